"""The files that operations write to a private S3 bucket.

A file is written as pieces, each an object. `join` copies them into one object inside S3, within one call, so that a
multipart upload never outlives the page that began it. If the upload is cut off, the next try starts again, and the
bucket's lifecycle rules remove what a crash left.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Protocol

from botocore.exceptions import BotoCoreError, ClientError

from sweephand.base.errors import NotFound, Unavailable

LEAST_PIECE = 5 * 1_048_576
"""The smallest size of a piece that S3 joins, in bytes. Only the last piece may be smaller."""
MOST_DELETED = 1_000
_MISSING = frozenset({"NoSuchKey", "404"})


class S3(Protocol):
    """The methods of botocore's client that are used here."""

    def put_object(self, **arguments: Any) -> dict[str, Any]: ...
    def get_object(self, **arguments: Any) -> dict[str, Any]: ...
    def list_objects_v2(self, **arguments: Any) -> dict[str, Any]: ...
    def delete_objects(self, **arguments: Any) -> dict[str, Any]: ...
    def create_multipart_upload(self, **arguments: Any) -> dict[str, Any]: ...
    def upload_part_copy(self, **arguments: Any) -> dict[str, Any]: ...
    def complete_multipart_upload(self, **arguments: Any) -> dict[str, Any]: ...
    def abort_multipart_upload(self, **arguments: Any) -> dict[str, Any]: ...
    def generate_presigned_url(self, ClientMethod: str, **arguments: Any) -> str: ...  # noqa: N803 - botocore's name


class Files:
    """A bucket of files.

    Safe for threads. All methods but `link` raise Unavailable if S3 refuses or does not answer.
    """

    def __init__(self, s3: S3, bucket: str) -> None:
        self._s3 = s3
        self._bucket = bucket

    def put(self, key: str, content: bytes, media_type: str, name: str) -> None:
        """Writes an object. name: the file name that a browser stores it under."""
        self._call("put_object", Key=key, Body=content, **_described(media_type, name))

    def get(self, key: str) -> bytes:
        """Reads an object. Raises NotFound."""
        answer = self._call("get_object", Key=key)
        try:
            content: bytes = answer["Body"].read()
        except (BotoCoreError, OSError) as broken:
            raise Unavailable("a file could not be read completely") from broken
        return content

    def join(self, key: str, pieces: Sequence[str], media_type: str, name: str) -> None:
        """Joins pieces, which stay, into one file. All but the last have LEAST_PIECE bytes or more. May be repeated.

        Raises NotFound if a piece no longer exists. Cost: one call per piece, about 0.2 s for 16 MiB.
        """
        upload = self._call("create_multipart_upload", Key=key, **_described(media_type, name))["UploadId"]
        try:
            parts = [self._copied(key, upload, number, piece) for number, piece in enumerate(pieces, start=1)]
            self._call("complete_multipart_upload", Key=key, UploadId=upload, MultipartUpload={"Parts": parts})
        except Exception:
            with suppress(Unavailable, NotFound):
                self._call("abort_multipart_upload", Key=key, UploadId=upload)
            raise

    def _copied(self, key: str, upload: str, number: int, piece: str) -> dict[str, Any]:
        source = {"Bucket": self._bucket, "Key": piece}
        answer = self._call("upload_part_copy", Key=key, UploadId=upload, PartNumber=number, CopySource=source)
        return {"PartNumber": number, "ETag": answer["CopyPartResult"]["ETag"]}

    def clear(self, prefix: str) -> None:
        """Deletes all objects with this prefix."""
        while contents := self._call("list_objects_v2", Prefix=prefix, MaxKeys=MOST_DELETED).get("Contents"):
            wanted = {"Objects": [{"Key": each["Key"]} for each in contents], "Quiet": True}
            if self._call("delete_objects", Delete=wanted).get("Errors"):
                raise Unavailable("files could not be deleted")

    def link(self, key: str, seconds: int) -> str:
        """Returns an address that gives the file to anybody for `seconds`. It is computed without a call to S3."""
        place = {"Bucket": self._bucket, "Key": key}
        return self._s3.generate_presigned_url("get_object", Params=place, ExpiresIn=seconds)

    def _call(self, operation: str, **arguments: Any) -> dict[str, Any]:
        try:
            answer: dict[str, Any] = getattr(self._s3, operation)(Bucket=self._bucket, **arguments)
        except ClientError as refused:
            if refused.response["Error"]["Code"] in _MISSING:
                raise NotFound("a file that was written before is gone") from refused
            raise Unavailable("the bucket of files refused a request") from refused
        except BotoCoreError as silent:
            raise Unavailable("the bucket of files does not answer") from silent
        return answer


def _described(media_type: str, name: str) -> Mapping[str, str]:
    return {"ContentType": media_type, "ContentDisposition": f'attachment; filename="{name}"'}
