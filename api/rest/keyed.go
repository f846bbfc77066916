// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"sandpit.dev/access"
	"sandpit.dev/api/guard"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store/keyed"
)

// keying says how an operation takes an idempotency key.
type keying struct {
	scope    access.Scope // that the operation needs: nobody without it learns of a key
	makes    []keyed.Kind
	follows  bool // the request ends with its client, and what it began goes on
	rebuilds bool // what is kept is a part of the answer, which the handler completes
	own      bool // the key is the token's own, and not its project's
	unread   bool // the body is too large to be read twice: its length stands for it
}

// making is how most operations take a key: they make something, or begin it.
func making(kinds ...keyed.Kind) keying { return keying{scope: access.SandboxesWrite, makes: kinds} }

// running is how those do that run a command.
func running(kinds ...keyed.Kind) keying {
	k := making(append(kinds, keyed.Process)...)
	k.rebuilds = true
	return k
}

// following has the request end with its client.
func (k keying) following() keying { k.follows = true; return k }

// keyedCall is a request with a key on its way through an operation.
type keyedCall struct {
	*keyed.Call
	client context.Context // ends when the client goes away
	kept   bool
}

// keptHeaders are those of an answer that are kept with it.
func keptHeaders() []string { return []string{"Location", processHeader, sandboxHeader} }

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
func (a *API) serveKeyed(o *operation, c *call, values []string) error {
	key, err := idempotencyKey(values)
	if err == nil {
		err = c.caller.Require(o.key.scope)
	}
	if err != nil {
		return err
	}
	if a.life.Err() != nil { // what is under way is not waited for, and could begin twice
		return context.Cause(a.life)
	}
	hash, err := c.hash(o)
	if err != nil {
		return err
	}
	r := keyed.Request{Project: c.caller.Project, Route: o.method + " " + route(c.r), Key: key, Hash: hash, Makes: o.key.makes}
	if o.key.own {
		r.Owner = c.caller.Actor + "\n" + c.caller.TokenID
	}
	k, err := a.keys.Begin(c.r.Context(), r)
	if err != nil {
		return err
	}
	defer k.End()
	if p := k.Prior(); p != nil {
		c.w.Header().Set(v1.IdempotentReplayed, "true")
		if p.Answer != nil && !o.key.rebuilds {
			return c.replay(p.Status, p.Header, p.Answer)
		}
	}
	c.key = &keyedCall{Call: k, client: c.r.Context()}
	ctx := k.Context(c.client())
	if !o.key.follows {
		ctx = context.WithoutCancel(ctx)
	}
	c.r = c.r.WithContext(ctx)
	return o.serve(c)
}

func (c *call) client() context.Context {
	if c.key != nil {
		return c.key.client
	}
	return c.r.Context()
}

// attachLater returns a context that ends with the client, too, once attach was called: what
// is begun before must be on record before the client's next request finds nothing.
func (c *call) attachLater(ctx context.Context) (_ context.Context, attach func()) {
	if c.key == nil {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	return ctx, sync.OnceFunc(func() { context.AfterFunc(c.key.client, cancel) })
}

// attached returns ctx as one that ends with the client.
func (c *call) attached(ctx context.Context) (context.Context, context.CancelFunc) {
	if c.key == nil {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(c.key.client, cancel)
	return ctx, func() { stop(); cancel() }
}

// route is the path of a request, by whichever base.
func route(r *http.Request) string {
	path := r.URL.EscapedPath()
	for _, base := range bases() {
		if rest, ok := strings.CutPrefix(path, base); ok {
			return rest
		}
	}
	return path
}

// hash is that of what the request asks for: its query, the type of its body and its body,
// which is read whole and can be read again.
func (c *call) hash(o *operation) ([]byte, error) {
	h := sha256.New()
	fmt.Fprintf(h, "%q %q ", c.r.URL.RawQuery, c.r.Header.Get("Content-Type"))
	if o.key.unread {
		fmt.Fprintf(h, "%d", c.r.ContentLength)
		return h.Sum(nil), nil
	}
	if c.r.ContentLength > o.in.maxBody {
		return nil, guard.TooLarge(o.in.maxBody)
	}
	if err := c.reserveBody(o.in.maxBody); err != nil {
		return nil, err
	}
	body, err := io.ReadAll(io.LimitReader(c.r.Body, o.in.maxBody+1))
	switch {
	case int64(len(body)) > o.in.maxBody:
		return nil, guard.TooLarge(o.in.maxBody)
	case err != nil:
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return nil, err
		}
		return nil, fault.Wrap(fault.Malformed, err, "the body ended after %d bytes, before its end", len(body))
	}
	h.Write(body)
	c.r.Body = io.NopCloser(bytes.NewReader(body))
	return h.Sum(nil), nil
}

// replay answers with what is kept.
func (c *call) replay(status int, header string, body []byte) error {
	h := c.w.Header()
	for line := range strings.Lines(header) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		h.Set(name, value)
	}
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	c.w.WriteHeader(status)
	_, _ = c.w.Write(body) // the client went away: nothing to tell
	return nil
}

// keep has the answer of a request with a key kept, once: what is kept first stays.
func (c *call) keep(status int, body []byte) {
	if c.key == nil || c.key.kept {
		return
	}
	c.key.kept = true
	var header strings.Builder
	for _, name := range keptHeaders() {
		if v := c.w.Header().Get(name); v != "" {
			header.WriteString(name + ": " + v + "\n")
		}
	}
	c.key.Answer(status, header.String(), body)
}

// keepNothing has no answer kept: another one comes once what was begun has ended.
func (c *call) keepNothing() {
	if c.key != nil {
		c.key.kept = true
	}
}

// keepAs has v kept instead of the answer.
func (c *call) keepAs(v any) error {
	if c.key == nil || c.key.kept {
		return nil
	}
	return encode(v, func(b []byte) { c.keep(c.status, b) })
}

// made returns what an earlier request with the same key has made of a kind, the last of it.
func (c *call) made(k keyed.Kind) (keyed.Thing, bool) {
	all := c.madeAll(k)
	if len(all) == 0 {
		return keyed.Thing{}, false
	}
	return all[len(all)-1], true
}

func (c *call) madeAll(k keyed.Kind) (out []keyed.Thing) {
	if c.key == nil || c.key.Prior() == nil {
		return nil
	}
	for _, t := range c.key.Made() {
		if t.Kind == k {
			out = append(out, t)
		}
	}
	return out
}

// renew has a request begin that came before and has nothing to show for it.
func (c *call) renew() {
	c.key.Renew()
	c.w.Header().Del(v1.IdempotentReplayed)
}

// again answers a repeated request with what the earlier one made and find finds. ok is
// false where there is none, and the request is to begin; what is not there any more was
// either undone, or ever says that it had been made.
func again[T any](c *call, k keyed.Kind, find func(id string) (T, error), ever func(id string) (bool, error)) (out T, ok bool, err error) {
	t, ok := c.made(k)
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
	c.renew()
	return out, false, nil
}
