"""S3, as far as files need it, in this process: through the taps, and with the rules that a wrong call would break."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from botocore.exceptions import ClientError

from sweephand.server.store.operations.files import LEAST_PIECE
from sweephand.testing.taps import Passing, Taps

NAME = "files-of-the-test"


@dataclass
class Upload:
    key: str
    described: tuple[str, str]
    parts: dict[int, bytes] = field(default_factory=dict)


@dataclass
class VirtualBucket:
    """objects: by key. described: their media type and disposition. uploads: those that were neither completed nor
    aborted. least: bytes of every part but the last.
    """

    tap: Taps
    least: int = LEAST_PIECE
    objects: dict[str, bytes] = field(default_factory=dict)
    described: dict[str, tuple[str, str]] = field(default_factory=dict)
    uploads: dict[str, Upload] = field(default_factory=dict)
    made: int = 0

    def put_object(self, **request: Any) -> dict[str, Any]:
        def act() -> dict[str, Any]:
            self._store(request["Key"], bytes(request["Body"]), _described(request))
            return {"ETag": _etag(request["Body"])}

        return self._pass("PutObject", request, act)

    def get_object(self, **request: Any) -> dict[str, Any]:
        return self._pass(
            "GetObject", request, lambda: {"Body": io.BytesIO(self._content(request["Key"], "GetObject"))}
        )

    def list_objects_v2(self, **request: Any) -> dict[str, Any]:
        def act() -> dict[str, Any]:
            keys = sorted(key for key in self.objects if key.startswith(request["Prefix"]))[: request["MaxKeys"]]
            return {"Contents": [{"Key": key} for key in keys]} if keys else {}

        return self._pass("ListObjectsV2", request, act)

    def delete_objects(self, **request: Any) -> dict[str, Any]:
        def act() -> dict[str, Any]:
            for each in request["Delete"]["Objects"]:
                self.objects.pop(each["Key"], None)
            return {}

        return self._pass("DeleteObjects", request, act)

    def create_multipart_upload(self, **request: Any) -> dict[str, Any]:
        def act() -> dict[str, Any]:
            self.made += 1
            self.uploads[f"upload-{self.made}"] = Upload(request["Key"], _described(request))
            return {"UploadId": f"upload-{self.made}"}

        return self._pass("CreateMultipartUpload", request, act)

    def upload_part_copy(self, **request: Any) -> dict[str, Any]:
        def act() -> dict[str, Any]:
            upload = self._upload(request, "UploadPartCopy")
            assert request["CopySource"]["Bucket"] == NAME
            upload.parts[request["PartNumber"]] = self._content(request["CopySource"]["Key"], "UploadPartCopy")
            return {"CopyPartResult": {"ETag": _etag(upload.parts[request["PartNumber"]])}}

        return self._pass("UploadPartCopy", request, act)

    def complete_multipart_upload(self, **request: Any) -> dict[str, Any]:
        def act() -> dict[str, Any]:
            upload = self._upload(request, "CompleteMultipartUpload")
            parts = []
            for told in request["MultipartUpload"]["Parts"]:
                part = upload.parts.get(told["PartNumber"])
                if part is None or _etag(part) != told["ETag"]:
                    raise _error("InvalidPart", "CompleteMultipartUpload")
                parts.append(part)
            if any(len(part) < self.least for part in parts[:-1]):
                raise _error("EntityTooSmall", "CompleteMultipartUpload")
            self._store(request["Key"], b"".join(parts), upload.described)
            del self.uploads[request["UploadId"]]
            return {}

        return self._pass("CompleteMultipartUpload", request, act)

    def abort_multipart_upload(self, **request: Any) -> dict[str, Any]:
        def act() -> dict[str, Any]:
            self._upload(request, "AbortMultipartUpload")
            del self.uploads[request["UploadId"]]
            return {}

        return self._pass("AbortMultipartUpload", request, act)

    def generate_presigned_url(self, ClientMethod: str, **arguments: Any) -> str:  # noqa: N803 - botocore's name
        assert ClientMethod == "get_object"
        place = arguments["Params"]
        return (
            f"https://{place['Bucket']}.example/{place['Key']}?expires={arguments['ExpiresIn']}&signature={self.made}"
        )

    # How it is done

    def _pass(self, operation: str, request: dict[str, Any], act: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        assert request["Bucket"] == NAME
        answer: dict[str, Any] = self.tap(Passing("s3", operation, request), act)
        return answer

    def _store(self, key: str, content: bytes, described: tuple[str, str]) -> None:
        self.objects[key], self.described[key] = content, described

    def _content(self, key: str, operation: str) -> bytes:
        if key not in self.objects:
            raise _error("NoSuchKey", operation)
        return self.objects[key]

    def _upload(self, request: dict[str, Any], operation: str) -> Upload:
        upload = self.uploads.get(request["UploadId"])
        if upload is None or upload.key != request["Key"]:
            raise _error("NoSuchUpload", operation)
        return upload


def _described(request: dict[str, Any]) -> tuple[str, str]:
    return request["ContentType"], request["ContentDisposition"]


def _etag(content: bytes) -> str:
    return f'"{hashlib.md5(content, usedforsecurity=False).hexdigest()}"'


def _error(code: str, operation: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": code}}, operation)
