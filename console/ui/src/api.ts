// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Calls of the REST API, with the session's cookie. No token is ever here.
import type { Problem, Whoami } from "./wire";
import { signal } from "./vendor/core";

// who is signed in; null: nobody, undefined: it is not known yet.
export const who = signal<Whoami | null | undefined>(undefined);

// ended says that a session was there, and that the server no longer knows it.
export const ended = signal(false);

// Failure is an answer that refuses, or none at all.
export class Failure extends Error {
  constructor(readonly status: number, readonly problem: Partial<Problem>) {
    super(problem.detail ?? "the server gave no answer");
  }
  get remedy(): string { return this.problem.remedy ?? ""; }
  get request(): string { return this.problem.request_id ?? ""; }
}

export interface Call {
  method?: string;
  body?: unknown;
  signal?: AbortSignal;
}

// raw sends a request and returns its answer, if that is no refusal.
export async function raw(path: string, o: RequestInit = {}): Promise<Response> {
  let answer: Response;
  try {
    answer = await fetch("/v1" + path, { cache: "no-store", credentials: "same-origin", redirect: "error", ...o });
  } catch (e) {
    if (o.signal?.aborted) throw e;
    throw new Failure(0, { detail: "The server cannot be reached.", remedy: "It may be restarting: what you see is as it was last." });
  }
  if (answer.ok) return answer;
  const problem = (await answer.json().catch(() => ({}))) as Partial<Problem>;
  if (answer.status === 401 && path !== "/session") {
    if (who.value) ended.value = true;
    who.value = null;
  }
  throw new Failure(answer.status, problem);
}

// call sends a request and returns what is answered as JSON.
export async function call<T>(path: string, o: Call = {}): Promise<T> {
  const init: RequestInit = { method: o.method ?? "GET" };
  if (o.signal) init.signal = o.signal;
  if (o.body !== undefined || init.method === "POST") {
    init.headers = { "Content-Type": "application/json" };
    init.body = JSON.stringify(o.body ?? {});
  }
  const answer = await raw(path, init);
  if (answer.status === 204) return undefined as T;
  const text = await answer.text();
  return (text === "" ? undefined : JSON.parse(text)) as T;
}

// save has the browser keep what a path answers with as a file. It goes by a blob: no page of the server's opens what came out of a
// sandbox.
export async function save(path: string, name: string): Promise<void> {
  const answer = await raw(path);
  const link = document.createElement("a");
  link.href = URL.createObjectURL(await answer.blob());
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

// seg is a part of a path.
export const seg = (text: string): string => encodeURIComponent(text);

// known returns who is signed in; null: nobody.
export async function known(): Promise<Whoami | null> {
  try {
    return await call<Whoami>("/whoami");
  } catch (e) {
    if (e instanceof Failure && e.status === 401) return null;
    throw e;
  }
}

// look finds out who is signed in.
export async function look(): Promise<void> {
  who.value = await known();
}

export async function signIn(by: { token: string } | { code: string }): Promise<void> {
  await call("/session", { method: "POST", body: by });
  ended.value = false;
  await look();
}

export async function signOut(): Promise<void> {
  await call("/session", { method: "DELETE" });
  who.value = null;
}

// may reports whether the token of who is signed in has a scope.
export function may(scope: string): boolean {
  const scopes = who.value?.scopes ?? [];
  return scopes.includes(scope) || scopes.includes("server:admin") || (scopes.includes("admin") && scope !== "server:admin");
}
