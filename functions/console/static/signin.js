// Sign-in at an issuer: authorization code with PKCE (RFC 7636). The token is kept in memory only. Only the verifier, the
// state and the address to return to are stored during the redirect.

import { sessionOf, signedIn } from "./api.js";

/** @type {{authorize_url: string, token_url: string, client_id: string, scope: string} | null} null: no issuer */
export const issuer = JSON.parse(document.querySelector("meta[name=sign-in]").getAttribute("content"));
const REDIRECT = `${location.origin}/console/sign-in`;
const KEPT = "sweephand.sign-in";

/** Opens the issuer's page in a new window, so that this page stays. The new window passes the token to all tabs. If no
 * window opens, this tab goes there. */
export function signInAtIssuer() {
  if (!window.open(REDIRECT, "sweephand-sign-in", "popup,width=480,height=680")) begin();
}

function random() {
  return encoded(crypto.getRandomValues(new Uint8Array(32)));
}

function encoded(bytes) {
  return btoa(String.fromCharCode(...bytes)).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
}

async function begin() {
  const kept = { verifier: random(), state: random(), back: location.pathname === "/console/sign-in" ? "/console" : location.href };
  sessionStorage.setItem(KEPT, JSON.stringify(kept));
  const challenge = encoded(new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(kept.verifier))));
  const asked = { response_type: "code", client_id: issuer.client_id, redirect_uri: REDIRECT, scope: issuer.scope, state: kept.state, code_challenge: challenge, code_challenge_method: "S256" };
  location.assign(`${issuer.authorize_url}?${new URLSearchParams(asked)}`);
}

/** Goes to the issuer, or completes the sign-in after it. Returns the address to continue at; null on the way there.
 * Throws a Problem. */
export async function atIssuer() {
  const told = new URLSearchParams(location.search);
  if (!told.has("code") && !told.has("error")) {
    await begin();
    return null;
  }
  const kept = JSON.parse(sessionStorage.getItem(KEPT) ?? "null");
  sessionStorage.removeItem(KEPT);
  history.replaceState(null, "", "/console/sign-in");
  if (!kept || told.get("state") !== kept.state) throw problem("This answer belongs to another sign-in. Begin again.");
  if (told.has("error")) throw problem(told.get("error_description") ?? told.get("error"));
  const body = new URLSearchParams({ grant_type: "authorization_code", code: told.get("code"), redirect_uri: REDIRECT, client_id: issuer.client_id, code_verifier: kept.verifier });
  const answer = await fetch(issuer.token_url, { method: "POST", body, credentials: "omit" }).catch(() => null);
  const token = await answer?.json().catch(() => null);
  if (!answer?.ok || !token?.access_token) throw problem(token?.error_description ?? "The issuer gave no token.");
  signedIn(sessionOf(token));
  window.close();
  return kept.back;
}

function problem(detail) {
  return { status: 401, code: "SIGN_IN", detail, errors: [], retryAfter: null };
}
