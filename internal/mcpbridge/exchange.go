// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcpbridge

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"
)

// How a server is tried again, and how often a session may be opened anew for
// one message.
const (
	firstPause  = 50 * time.Millisecond
	longPause   = time.Second
	maxRenewals = 3
	// maxRefusal bounds what is read of an HTTP error.
	maxRefusal = 64 << 10
)

// Why a message was not delivered; each decides what happens next.
var (
	errUnsent = errors.New("not sent")         // the server has not taken it
	errBusy   = errors.New("not ready")        // it has not taken it, and says so
	errGone   = errors.New("no such session")  // the server has not taken it, it needs a new session
	errLost   = errors.New("connection broke") // it may have taken it
)

// exchange delivers a message and passes what the server answers to the client.
// f is the call's flight, nil for what gets no answer. The error is for the
// client: there was no answer, and there will be none.
func (b *bridge) exchange(ctx context.Context, f *flight, m *message, data []byte) error {
	began, pause, renewals := time.Now(), firstPause, 0
	patience := b.patience
	if f == nil && b.away.Load() {
		patience = 0 // no caller waits for its answer, and others wait behind it
	}
	for {
		s := b.current()
		x := &attempt{b: b, f: f, m: m, session: s}
		err := x.post(ctx, data)
		switch {
		case err == nil:
			if f != nil && m.Method == methodInitialize {
				b.opened(x, data)
			}
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("%s was given up", m.Method)
		case errors.Is(err, errGone):
			if renewals++; renewals > maxRenewals {
				return fmt.Errorf("the server forgets every session: %w", err)
			}
			if err := b.renew(ctx, s); err != nil {
				return fmt.Errorf("the server was restarted, and a new session could not be opened: %w", err)
			}
			continue
		case errors.Is(err, errBusy):
			if time.Since(began) > b.starting {
				return err
			}
		case errors.Is(err, errUnsent), errors.Is(err, errLost) && m.repeatable() && !x.passed:
			if hopeless(err) || time.Since(began) >= patience {
				b.away.Store(true)
				return b.unreachable(err)
			}
		case errors.Is(err, errLost) && x.event != "" && !x.answered:
			if rerr := b.resume(ctx, x); rerr == nil {
				return nil
			}
			return lostText(err)
		case errors.Is(err, errLost):
			return lostText(err)
		default:
			return err
		}
		t := time.NewTimer(pause)
		select {
		case <-ctx.Done():
		case <-t.C:
		}
		t.Stop()
		pause = min(2*pause, longPause)
		b.look()
	}
}

// hopeless reports whether another try of a server cannot help, because the wrong server answers.
func hopeless(err error) bool {
	_, ok := errors.AsType[*tls.CertificateVerificationError](err)
	return ok || errors.Is(err, http.ErrSchemeMismatch)
}

// unreachable returns the client's error for a server that does not answer: its address, the
// cause, and the next step.
func (b *bridge) unreachable(err error) error {
	address, _ := b.place()
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err // the address is said, and the method means nothing to anybody
	}
	if b.remedy == "" {
		return fmt.Errorf("the server at %s cannot be reached: %w", address, err)
	}
	return fmt.Errorf("the server at %s cannot be reached: %w; %s", address, err, b.remedy)
}

// attempt is one try of a message.
type attempt struct {
	b       *bridge
	f       *flight
	m       *message
	session session // that it goes out in

	passed   bool // something of the answer went to the client
	answered bool
	event    string // the last one that came, where the stream can be asked for again
	reply    []byte // to initialize
	newID    string // of the session that it opened
	private  bool   // the answer is the bridge's, and not the client's
}

// request makes a request with what every one has.
func (b *bridge) request(ctx context.Context, method string, body io.Reader) (*http.Request, error) {
	address, token := b.place()
	req, err := http.NewRequestWithContext(ctx, method, address, body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", "sandpit-mcp")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	return req, nil
}

func (x *attempt) post(ctx context.Context, data []byte) error {
	body := &outgoing{data: data}
	if x.f != nil {
		body.taken = func() { x.f.sentOnce.Do(func() { close(x.f.sent) }) }
	}
	req, err := x.b.request(ctx, http.MethodPost, body)
	if err != nil {
		return err
	}
	req.ContentLength = int64(len(data))
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	x.era(req.Header)
	if !x.m.repeatable() {
		// The body follows when the server has asked for it. So a connection that
		// was kept, and that a server which is gone has closed, shows before the
		// message is out, and the message may be sent again.
		req.Header.Set("Expect", "100-continue")
	}
	resp, err := x.b.http.Do(req)
	if err != nil {
		if body.begun.Load() {
			return fmt.Errorf("%w: %w", errLost, err)
		}
		return fmt.Errorf("%w: %w", errUnsent, err)
	}
	x.b.away.Store(false)
	defer resp.Body.Close()
	return x.read(resp)
}

// outgoing is a message that notes when it begins to leave: from then on the
// server may have it. The transport's own trace says so too late.
type outgoing struct {
	data  []byte
	begun atomic.Bool
	taken func() // called at the beginning; may be nil
}

func (o *outgoing) Read(p []byte) (int, error) {
	if o.begun.CompareAndSwap(false, true) && o.taken != nil {
		o.taken()
	}
	if len(o.data) == 0 {
		return 0, io.EOF
	}
	n := copy(p, o.data)
	o.data = o.data[n:]
	return n, nil
}

// era sets the headers that the message's era of the protocol asks for.
func (x *attempt) era(h http.Header) {
	if v := x.m.version(); v != "" {
		h.Set("Mcp-Protocol-Version", v)
		h.Set("Mcp-Method", x.m.Method)
		if name := x.m.Params.Name; name != "" {
			h.Set("Mcp-Name", headerValue(name))
		} else if uri := x.m.Params.URI; uri != "" {
			h.Set("Mcp-Name", headerValue(uri))
		}
		return
	}
	if x.m.Method != methodInitialize {
		x.session.set(h)
	}
}

func (x *attempt) read(resp *http.Response) error {
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	x.newID = resp.Header.Get("Mcp-Session-Id")
	switch {
	case resp.StatusCode == http.StatusNotFound && x.m.version() == "" && x.session.id != "" && x.m.Method != methodInitialize:
		return errGone
	case resp.StatusCode == http.StatusServiceUnavailable:
		if err := x.refused(resp); err != nil {
			return fmt.Errorf("%w: %w", errBusy, err)
		}
		return nil // it is the answer
	case resp.StatusCode < 200 || resp.StatusCode > 299:
		return x.refused(resp)
	case x.f == nil && !x.private:
		return nil // it gets no answer
	case media == "text/event-stream":
		err := events(resp.Body, x.b.most, x.take)
		if x.answered {
			return nil
		}
		if errors.Is(err, errLong) {
			return fmt.Errorf("the answer is too long: %w", err)
		}
		return fmt.Errorf("%w before the answer came (%v)", errLost, err)
	case media == "application/json":
		data, err := io.ReadAll(io.LimitReader(resp.Body, int64(x.b.most)+1))
		if err != nil {
			return fmt.Errorf("%w: %w", errLost, err)
		}
		if len(data) > x.b.most {
			return fmt.Errorf("the answer is too long: it has more than %d bytes", x.b.most)
		}
		x.pass(data)
	}
	if !x.answered {
		return fmt.Errorf("the server answered %s without an answer to the call", resp.Status)
	}
	return nil
}

// take takes an event of the answer's stream.
func (x *attempt) take(id string, data []byte) {
	if id != "" && x.m.version() == "" {
		x.event = id
	}
	if len(data) > 0 { // else it only names the place
		x.pass(data)
	}
}

// pass passes a message of the server to the client.
func (x *attempt) pass(data []byte) {
	m, err := parse(data)
	if err != nil {
		x.b.log.Warn("the server sent what is no message", "error", err)
		return
	}
	if m.isReply() && key(m.ID) == key(x.m.ID) && !x.answered {
		x.answered = true
		if x.f != nil {
			x.b.land(x.f) // before the client can know, and use the id again
			close(x.f.answered)
		}
		if x.m.Method == methodInitialize {
			x.reply = bytes.Clone(data)
		}
	}
	if !x.private {
		x.passed = true
		x.b.out.write(data)
	}
}

// refused makes an error of an HTTP error, or passes it where it is an answer.
func (x *attempt) refused(resp *http.Response) error {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxRefusal)) // as much as there is
	var said struct {
		ID    json.RawMessage `json:"id"`
		Error *struct {
			Message string `json:"message"`
		} `json:"error"`
		Detail string `json:"detail"`
		Remedy string `json:"remedy"`
	}
	text := ""
	if json.Unmarshal(body, &said) == nil {
		if said.Error != nil {
			if x.f != nil && len(said.ID) > 0 && key(said.ID) == key(x.m.ID) {
				x.pass(body)
				return nil
			}
			text = said.Error.Message
		} else {
			text = strings.TrimSuffix(said.Detail+"; "+said.Remedy, "; ")
		}
	} else if media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); media == "text/plain" {
		text = strings.TrimSpace(string(body))
	}
	if text == "" {
		text = "no reason was given"
	}
	address, _ := x.b.place()
	return fmt.Errorf("the server at %s refused it (%s): %s", address, resp.Status, text)
}

// headerValue is a value as headers carry it: as it is, or marked as base64
// where it is not plain.
func headerValue(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' }) || strings.TrimSpace(s) != s {
		return "=?base64?" + base64Text(s) + "?="
	}
	return s
}
