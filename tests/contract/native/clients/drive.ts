// Uses the types that openapi-typescript has made: lists jobs, creates one, runs it and reads its runs. Prints JSON.
import createClient from "openapi-fetch";
import type { paths } from "./made.js";

declare const process: { argv: string[]; stdout: { write(text: string): void } };
const [, , baseUrl, id, secret] = process.argv;
const client = createClient<paths>({ baseUrl, headers: { Authorization: `Basic ${btoa(`${id}:${secret}`)}` } });
const body = { name: "generated-typescript", action: { type: "event", detailType: "made" }, schedules: [] } as const;

const created = await client.POST("/v1/jobs", { body: { ...body, schedules: [] } });
if (!created.data) throw new Error(JSON.stringify(created.error));
const job = created.data.id;
await client.POST("/v1/jobs/{job}/run", { params: { path: { job } } });
const listed = await client.GET("/v1/jobs", { params: { query: { name: body.name } } });
const runs = await client.GET("/v1/runs", { params: { query: { jobId: job } } });
const refused = await client.POST("/v1/jobs", { body: { ...body, schedules: [] } });
process.stdout.write(
  JSON.stringify({
    created: job,
    listed: listed.data?.items.map((each) => each.id),
    runs: runs.data?.items.map((each) => each.jobId),
    refused: refused.error ? refused.response.status : 0,
  }),
);
