// A receiver that accepts only signed calls: Standard Webhooks v1 with nothing but Web Crypto. It runs on Node, Deno,
// Bun and at the edge. In a program of your own, the library `standardwebhooks` does what `verified` does.

const TOLERANCE_S = 300;

/** Says whether this call was signed with the secret within five minutes of now. body: the bytes as they came. */
export async function verified(secret: string, headers: Headers, body: ArrayBuffer, now = Date.now()): Promise<boolean> {
  const id = headers.get("webhook-id") ?? "";
  const stamp = headers.get("webhook-timestamp") ?? "";
  if (!/^\d+$/.test(stamp) || Math.abs(now / 1000 - Number(stamp)) > TOLERANCE_S) return false;
  const hmac = { name: "HMAC", hash: "SHA-256" };
  const key = await crypto.subtle.importKey("raw", decoded(secret.replace(/^whsec_/, "")), hmac, false, ["verify"]);
  const signed = await new Blob([`${id}.${stamp}.`, body]).arrayBuffer();
  // During a rotation there are two signatures, separated by a space; one of them must match.
  for (const each of (headers.get("webhook-signature") ?? "").split(" ")) {
    const [version, signature = ""] = each.split(",");
    if (version === "v1" && (await crypto.subtle.verify("HMAC", key, decoded(signature), signed))) return true;
  }
  return false;
}

function decoded(base64: string): Uint8Array<ArrayBuffer> {
  try {
    return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  } catch {
    return new Uint8Array(); // no signature is empty, so this one matches nothing
  }
}

/** Answers 204 to a signed call, 401 to any other. `webhook-id` is the run's id: do its work only once. */
export async function receive(request: Request, secret: string): Promise<Response> {
  const body = await request.arrayBuffer();
  if (!(await verified(secret, request.headers, body))) return new Response("not signed", { status: 401 });
  console.log(request.headers.get("webhook-id"), new TextDecoder().decode(body));
  return new Response(null, { status: 204 });
}
