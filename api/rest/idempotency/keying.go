// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package idempotency

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"sandpit.dev/access"
	"sandpit.dev/api/httpapi"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store/keyed"
)

// Keying says how an operation takes an idempotency key.
type Keying struct {
	Scope    access.Scope // that the operation needs: nobody without it learns of a key
	Makes    []keyed.Kind
	follows  bool // the request ends with its client, and what it began goes on
	rebuilds bool // what is kept is a part of the answer, which the handler completes
	Own      bool // the key is the token's own, and not its project's
	Unread   bool // the body is too large to be read twice: its length stands for it
}

// Keyless is why a POST takes no idempotency key.
type Keyless string

// Making is how most operations take a key: they make something, or begin it.
func Making(kinds ...keyed.Kind) Keying { return Keying{Scope: access.SandboxesWrite, Makes: kinds} }

// Running is how those do that run a command.
func Running(kinds ...keyed.Kind) Keying {
	k := Making(append(kinds, keyed.Process)...)
	k.rebuilds = true
	return k
}

// Following has the request end with its client.
func (k Keying) Following() Keying { k.follows = true; return k }

// keyedCall is a request with a key on its way through an operation.
type keyedCall struct {
	*keyed.Call
	client context.Context // ends when the client goes away
	kept   bool
}

// keptHeaders are those of an answer that are kept with it.
func keptHeaders() []string { return []string{"Location", v1.ProcessHeader, v1.SandboxHeader} }

// idempotencyKey reads the header, which may be a bare text, or one in quotes as structured
// fields have it.
func idempotencyKey(values []string) (string, error) {
	if len(values) > 1 {
		return "", fault.InvalidField(v1.IdempotencyKey, "is given twice")
	}
	key := values[0]
	if n := len(key); n > 1 && key[0] == '"' && key[n-1] == '"' {
		key = key[1 : n-1]
	}
	return key, keyed.CheckKey(v1.IdempotencyKey, key)
}

// serveKeyed serves a request with a key: one that was answered gets that answer again, one
// that has begun goes on where it was, and all others begin.
func serveKeyed(keys *keyed.Keys, o *httpapi.Operation, how Keying, c *Call, values []string) error {
	key, err := idempotencyKey(values)
	if err == nil {
		err = c.Caller.Inside().Require(how.Scope) // which sandboxes it reaches is for the operation to say
	}
	if err == nil { // what is under way is not waited for, and could begin twice
		err = c.Closed()
	}
	if err != nil {
		return err
	}
	hash, err := c.hash(how)
	if err != nil {
		return err
	}
	r := keyed.Request{Project: c.Caller.Project, Route: o.Method + " " + c.Route(), Key: key, Hash: hash, Makes: how.Makes}
	if how.Own {
		r.Owner = c.Caller.Actor + "\n" + c.Caller.TokenID
	}
	if c.Caller.Sandbox != "" { // it learns of no answer that others got
		r.Owner = c.Caller.Actor + "\n" + c.Caller.TokenID
	}
	k, err := keys.Begin(c.R.Context(), r)
	if err != nil {
		return err
	}
	defer k.End()
	if p := k.Prior(); p != nil {
		c.W.Header().Set(v1.IdempotentReplayed, "true")
		if (p.Answer != nil || p.Status == http.StatusNoContent) && !how.rebuilds {
			c.replay(p.Status, p.Header, p.Answer)
			return nil
		}
	}
	c.key = &keyedCall{Call: k, client: c.R.Context()}
	c.Value, c.Answered = c.key, c.Keep
	ctx := k.Context(c.client())
	if !how.follows {
		ctx = context.WithoutCancel(ctx)
	}
	c.R = c.R.WithContext(ctx)
	return o.Serve(c.Call)
}

func (c *Call) client() context.Context {
	if c.key != nil {
		return c.key.client
	}
	return c.R.Context()
}

// AttachLater returns a context that ends with the client, too, once attach was called: what
// is begun before must be on record before the client's next request finds nothing.
func (c *Call) AttachLater(ctx context.Context) (_ context.Context, attach func()) {
	if c.key == nil {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	return ctx, sync.OnceFunc(func() { context.AfterFunc(c.key.client, cancel) })
}

// Attached returns ctx as one that ends with the client.
func (c *Call) Attached(ctx context.Context) (context.Context, context.CancelFunc) {
	if c.key == nil {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(c.key.client, cancel)
	return ctx, func() { stop(); cancel() }
}

// hash returns that of what the request asks for: its query, the type of its body and its body,
// which is read whole and can be read again.
func (c *Call) hash(how Keying) ([]byte, error) {
	h := sha256.New()
	fmt.Fprintf(h, "%q %q ", c.R.URL.RawQuery, c.R.Header.Get("Content-Type"))
	if how.Unread {
		fmt.Fprintf(h, "%d", c.R.ContentLength)
		return h.Sum(nil), nil
	}
	body, err := c.Body()
	if err != nil {
		return nil, err
	}
	h.Write(body)
	return h.Sum(nil), nil
}

// replay answers with what is kept.
func (c *Call) replay(status int, header string, body []byte) {
	for line := range strings.Lines(header) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		c.W.Header().Set(name, value)
	}
	c.Status = status
	if status == http.StatusNoContent {
		c.W.WriteHeader(status)
		return
	}
	c.Send(body)
}

// Keep has the answer of a request with a key kept, once: what is kept first stays.
func (c *Call) Keep(status int, body []byte) {
	if c.key == nil || c.key.kept {
		return
	}
	c.key.kept = true
	var header strings.Builder
	for _, name := range keptHeaders() {
		if v := c.W.Header().Get(name); v != "" {
			header.WriteString(name + ": " + v + "\n")
		}
	}
	c.key.Answer(status, header.String(), body)
}

// KeepNothing has no answer kept: another one comes once what was begun has ended.
func (c *Call) KeepNothing() {
	if c.key != nil {
		c.key.kept = true
	}
}

// KeepAs has v kept instead of the answer.
func (c *Call) KeepAs(v any) error {
	if c.key == nil || c.key.kept {
		return nil
	}
	return httpapi.Encode(v, func(b []byte) { c.Keep(c.Status, b) })
}

// Keyed reports whether the call has a key.
func (c *Call) Keyed() bool { return c.key != nil }

// Repeated reports whether an earlier request had the same key.
func (c *Call) Repeated() bool { return c.key != nil && c.key.Prior() != nil }

// KeptAnswer returns what is kept of the answer to the earlier request with the same key; nil: nothing is.
func (c *Call) KeptAnswer() []byte {
	if !c.Repeated() {
		return nil
	}
	return c.key.Prior().Answer
}

// Made returns what an earlier request with the same key has made of a kind, the last of it.
func (c *Call) Made(k keyed.Kind) (keyed.Thing, bool) {
	all := c.MadeAll(k)
	if len(all) == 0 {
		return keyed.Thing{}, false
	}
	return all[len(all)-1], true
}

// MadeAll returns all that an earlier request with the same key has made of a kind.
func (c *Call) MadeAll(k keyed.Kind) (out []keyed.Thing) {
	if !c.Repeated() {
		return nil
	}
	for _, t := range c.key.Made() {
		if t.Kind == k {
			out = append(out, t)
		}
	}
	return out
}

// Renew has a request begin that came before and has nothing to show for it.
func (c *Call) Renew() {
	c.key.Renew()
	c.W.Header().Del(v1.IdempotentReplayed)
}

// Again answers a repeated request with what the earlier one made and find finds. ok is
// false where there is none, and the request is to begin; what is not there any more was
// either undone, or ever says that it had been made.
func Again[T any](c *Call, k keyed.Kind, find func(id string) (T, error), ever func(id string) (bool, error)) (out T, ok bool, err error) {
	t, ok := c.Made(k)
	if !ok {
		return out, false, nil
	}
	out, err = find(t.ID)
	if !fault.Is(err, fault.NotFound) {
		return out, true, err
	}
	if ever != nil {
		if was, everErr := ever(t.ID); everErr != nil || was {
			if everErr == nil {
				everErr = fault.New(fault.NotFound, "the %s %s, which this request made, is gone", t.Kind, sandbox.Clip(t.ID, 40)).
					WithRemedy("send a new idempotency key to make another")
			}
			return out, true, everErr
		}
	}
	c.Renew()
	return out, false, nil
}
