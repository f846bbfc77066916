// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Where a person signs in: a token is exchanged for a session, and kept nowhere.
import { ended, Failure, signIn } from "../api";
import { Code } from "../parts/copy";
import { Field, Trouble } from "../parts/parts";
import { useEffect, useSignal } from "../vendor/core";
import type { JSX } from "../vendor/core";

export function SignIn(p: { why: unknown }): JSX.Element {
  const failed = useSignal<unknown>(null);
  const busy = useSignal(false);
  useEffect(() => { document.title = "Sign in · sandpit"; }, []);
  const send = async (e: Event): Promise<void> => {
    e.preventDefault();
    const input = (e.currentTarget as HTMLFormElement).elements.namedItem("token") as HTMLInputElement;
    const token = input.value.trim();
    if (token === "" || busy.value) return;
    busy.value = true;
    failed.value = null;
    try {
      await signIn({ token });
      input.value = "";
    } catch (error) {
      failed.value = error instanceof Failure && error.status === 401 ? new Failure(401, { detail: "No such token: it is mistyped, revoked or over." }) : error;
    } finally {
      busy.value = false;
    }
  };
  const safe = window.isSecureContext;
  return (
    <main id="content" class="signin">
      <h1>sandpit</h1>
      <p>Sandboxes for AI agents on this server. Sign in to see what they do, and to stop or undo it.</p>
      {!safe && <p class="trouble" role="alert">Browsers keep a session only over https, or at localhost. Open this server by https, or forward a port of your own machine to it: <code>ssh -L 8080:localhost:8080 HOST</code></p>}
      {ended.value && !failed.value && <p class="trouble" role="alert">Your token was revoked, or your session ended. Sign in again.</p>}
      <form onSubmit={(e) => void send(e)}>
        <Field label="Token" hint="It is exchanged once for a session, and kept nowhere in this browser.">
          {(id, hint) => <input id={id} name="token" type="password" autocomplete="off" spellcheck={false} required aria-describedby={hint} autofocus />}
        </Field>
        <button type="submit" class="primary" aria-busy={busy.value}>Sign in</button>
      </form>
      <Trouble error={failed.value ?? p.why} />
      <h2>No token at hand?</h2>
      <p>On the server's machine this opens the console signed in:</p>
      <Code text="sandpit console" />
      <p>And this makes a token that can be revoked:</p>
      <Code text="sandpit token create --name console" />
      <p><a href="/connect">Connect an agent</a> without signing in.</p>
    </main>
  );
}
