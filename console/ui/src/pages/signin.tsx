// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Where a person signs in: a token is exchanged for a session, and kept nowhere.
import { signIn } from "../api";
import { Field, Trouble } from "../parts/parts";
import { useEffect, useSignal } from "../vendor/core";
import type { JSX } from "../vendor/core";

export function SignIn(): JSX.Element {
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
    } catch (error) {
      failed.value = error;
    } finally {
      input.value = "";
      busy.value = false;
    }
  };
  const safe = window.isSecureContext;
  return (
    <main id="content" class="signin">
      <h1>sandpit</h1>
      <p>Sandboxes for AI agents on this server. Sign in to see what they do, and to stop or undo it.</p>
      {!safe && <p class="trouble" role="alert">Browsers keep a session only over https, or at localhost. Open this server by https, or forward a port of your own machine to it: <code>ssh -L 8080:localhost:8080 HOST</code></p>}
      <form onSubmit={(e) => void send(e)}>
        <Field label="Token" hint="It is exchanged once for a session, and kept nowhere in this browser.">
          {(id, hint) => <input id={id} name="token" type="password" autocomplete="off" spellcheck={false} required aria-describedby={hint} autofocus />}
        </Field>
        <button type="submit" class="primary" aria-busy={busy.value}>Sign in</button>
      </form>
      <Trouble error={failed.value} />
      <h2>No token at hand?</h2>
      <p>On the server's machine this opens the console signed in:</p>
      <pre>sandpit console</pre>
      <p>And this makes a token that can be revoked:</p>
      <pre>sandpit token create --name console</pre>
      <p><a href="/connect">Connect an agent</a> without signing in.</p>
    </main>
  );
}
