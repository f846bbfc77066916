// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"encoding/json"
	"time"

	"sandpit.dev/api/httpapi"
	"sandpit.dev/api/rest/idempotency"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/code"
	"sandpit.dev/fault"
	"sandpit.dev/kernel"
	"sandpit.dev/sandbox"
	"sandpit.dev/store/keyed"
)

// codeAgain is the result of a cell of the same request before: as it was kept, or else as
// far as it is on record.
func (a *API) codeAgain(ctx context.Context, c *idempotency.Call) (*v1.CodeResult, bool, error) {
	if !c.Repeated() {
		return nil, false, nil
	}
	if answer := c.KeptAnswer(); answer != nil {
		out := new(v1.CodeResult)
		if err := json.Unmarshal(answer, out); err != nil {
			return nil, false, fault.Wrap(fault.Internal, err, "the answer that was kept cannot be read")
		}
		return out, true, nil
	}
	t, ok := c.Made(keyed.Process)
	if !ok {
		return nil, false, nil
	}
	res, began, err := a.Code.CodeAgain(ctx, c.Caller, t.Sandbox, t.ID)
	if err != nil {
		return nil, false, err
	}
	if !began {
		c.Renew()
		return nil, false, nil
	}
	out := codeResult(&res)
	return &out, true, nil
}

// streamResult streams a result that is known already.
func (a *API) streamResult(c *idempotency.Call, r *v1.CodeResult) error {
	s := c.Events()
	defer s.Close()
	event := func(name string, data any) httpapi.Event { return httpapi.Event{Name: name, Data: data} }
	items := []httpapi.Event{event(v1.StreamStart, r.CodeStarted)}
	if r.Stdout != "" {
		items = append(items, event(v1.StreamStdout, v1.Output{At: time.Now().UTC(), Data: r.Stdout, DataBase64: r.StdoutBase64}))
	}
	if r.Stderr != "" {
		items = append(items, event(v1.StreamStderr, v1.Output{At: time.Now().UTC(), Data: r.Stderr, DataBase64: r.StderrBase64}))
	}
	for _, one := range r.Results {
		items = append(items, event(v1.StreamResult, one))
	}
	_ = s.SendAll(append(items, event(v1.StreamEnd, r.CodeOutcome))) // what a client that went away does not take is left out
	s.End()
	return nil
}

// codeKeeper keeps what a cell streams, for the same request again. A nil one keeps nothing.
type codeKeeper struct {
	res  code.Result
	held int
	on   bool
}

func newCodeKeeper(c *idempotency.Call, interrupts bool) *codeKeeper {
	return &codeKeeper{on: c.Keyed() && !interrupts}
}

// room reports whether n bytes more can be kept.
func (k *codeKeeper) room(n int) bool {
	k.held += n
	if k.held > keyed.MaxAnswer {
		k.on, k.res = false, code.Result{}
	}
	return k.on
}

func (k *codeKeeper) text(to *[]byte, b []byte) {
	if k.on && k.room(len(b)) {
		*to = append(*to, b...)
	}
}

func (k *codeKeeper) result(r kernel.Result) {
	if k.on && k.room(int(r.Size())) {
		k.res.Results = append(k.res.Results, r)
	}
}

// done keeps the whole as the answer that is no stream.
func (k *codeKeeper) done(c *idempotency.Call, res code.Result) error {
	if !k.on {
		c.KeepNothing()
		return nil
	}
	res.Stdout, res.Stderr, res.Results = k.res.Stdout, k.res.Stderr, k.res.Results
	out := codeResult(&res)
	return c.KeepAs(&out)
}

// codeSender sends events of a cell. One of a request with a key is seen to its end, whether
// its client listens or not, so that its answer can be kept.
func codeSender(c *idempotency.Call, s *httpapi.Events, interrupts bool) func(string, any) error {
	deaf := false
	return func(name string, data any) error {
		if deaf {
			return nil
		}
		err := s.Send(name, 0, data)
		if c.Keyed() && !interrupts && err != nil {
			deaf, err = true, nil
		}
		return err
	}
}

// deafened is codeSender for frames.
func deafened(c *idempotency.Call, sink func(sandbox.Frame) error) func(sandbox.Frame) error {
	if !c.Keyed() {
		return sink
	}
	deaf := false
	return func(f sandbox.Frame) error {
		if !deaf && sink(f) != nil {
			deaf = true
		}
		return nil
	}
}
