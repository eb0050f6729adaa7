// Creates a job for a customer's report and reads the result of its first run, with a typed client.
//
//   npx openapi-typescript "$SWEEPHAND_URL/v1/openapi.json" -o sweephand.d.ts
//   npm install openapi-fetch

import createClient from "openapi-fetch";
import type { paths } from "./sweephand.js";

const { SWEEPHAND_URL, SWEEPHAND_CLIENT_ID, SWEEPHAND_SECRET } = process.env;
const sweephand = createClient<paths>({
  baseUrl: SWEEPHAND_URL,
  headers: { Authorization: `Basic ${btoa(`${SWEEPHAND_CLIENT_ID}:${SWEEPHAND_SECRET}`)}` },
});

const created = await sweephand.POST("/v1/jobs", {
  params: { header: { "Idempotency-Key": crypto.randomUUID() } },
  body: {
    name: "north-report",
    action: { type: "http", url: "http://127.0.0.1:9000/", payload: { customer: "north" } },
    schedules: [{ cron: "0 9 * * mon-fri", timezone: "America/New_York" }],
  },
});
if (!created.data) throw new Error(JSON.stringify(created.error));
const job = created.data.id;

const started = await sweephand.POST("/v1/jobs/{job}/run", { params: { path: { job } } });
if (!started.data) throw new Error(JSON.stringify(started.error));
const run = started.data.runId;

let now;
do {
  await new Promise((resolve) => setTimeout(resolve, 500));
  now = (await sweephand.GET("/v1/runs/{run}", { params: { path: { run } } })).data;
} while (now?.status !== "COMPLETED");
console.log(now.state, now.reason, now.answer);

await sweephand.DELETE("/v1/jobs/{job}", { params: { path: { job } } });
