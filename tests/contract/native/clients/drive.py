"""Uses the client that openapi-python-client has made: lists jobs, creates one, runs it and reads its runs.

Arguments: the folder of the package `made`, the base URL, a client id, its secret. Prints JSON.
"""

import base64
import importlib
import json
import sys

folder, base_url, client_id, secret = sys.argv[1:]
sys.path.insert(0, folder)
made = importlib.import_module("made")
jobs = {name: importlib.import_module(f"made.api.jobs.{name}") for name in ("list_jobs", "create_job", "run_job")}
list_runs = importlib.import_module("made.api.runs.list_runs")
models = importlib.import_module("made.models")

token = base64.b64encode(f"{client_id}:{secret}".encode()).decode()
client = made.AuthenticatedClient(base_url=base_url, token=token, prefix="Basic", timeout=60)
body = {"name": "generated-python", "action": {"type": "event", "detailType": "made"}, "schedules": []}
created = jobs["create_job"].sync(client=client, body=models.JobDraft.from_dict(body))
jobs["run_job"].sync_detailed(created.id, client=client)
listed = jobs["list_jobs"].sync(client=client, name="generated-python")
runs = list_runs.sync(client=client, job_id=created.id)
missing = jobs["create_job"].sync(client=client, body=models.JobDraft.from_dict(body))
told = {
    "created": created.id,
    "listed": [each.id for each in listed.items],
    "runs": [each.job_id for each in runs.items],
    "refused": [type(missing).__name__, missing.status],
}
sys.stdout.write(json.dumps(told, default=str))
