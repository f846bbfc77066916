// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcpbridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"
)

// Options configure a bridge.
type Options struct {
	URL   string // of the server's MCP address; required
	Token string // sent as a bearer token; empty: none
	// Find returns where the server is now, when it cannot be reached; ok false: nowhere. It is
	// called concurrently. Nil: it stays where it is.
	Find func() (url, token string, ok bool)
	// HTTP makes the requests; it must have no timeout of its own. Nil: one
	// of the bridge's own.
	HTTP   *http.Client
	Logger *slog.Logger // nil: discard. It must not write to stdout
	// MaxMessage is the most bytes of one message in either direction; zero: 16 MiB.
	MaxMessage int
	// Patience is how long a server that does not answer is tried again before the client gets an
	// error, which is long enough for one that is restarted; zero: 4 s. A notification after such
	// an error is tried once.
	Patience time.Duration
	// StartPatience is the same for a server that answers that it is not ready; zero: 15 s.
	StartPatience time.Duration
	// Remedy is the advice in a client's error about a server that cannot be reached; it may be
	// empty.
	Remedy string
}

const (
	defaultMaxMessage = 16 << 20
	// A person who waits for an answer takes more for a program that hangs.
	defaultPatience      = 4 * time.Second
	defaultStartPatience = 15 * time.Second
	// connectBound bounds one try of an address that swallows what is sent to it.
	connectBound = 4 * time.Second
	// maxInFlight bounds the calls that are waited for at once.
	maxInFlight = 1024
	// noticeBound bounds a notification, which others wait behind.
	noticeBound = 30 * time.Second
	// expectBound is how long a message waits to be asked for, see attempt.post.
	expectBound = 100 * time.Millisecond
	// partingBound bounds the end of the session.
	partingBound = 2 * time.Second
)

// bridge is one run.
type bridge struct {
	find     func() (url, token string, ok bool)
	http     *http.Client
	log      *slog.Logger
	most     int
	patience time.Duration
	starting time.Duration // how long a server is given that says that it is not ready
	remedy   string
	out      *writer
	wg       sync.WaitGroup
	heard    chan session // the newest, for the listening
	away     atomic.Bool  // the last message was dropped, since the server does not answer

	mu      sync.Mutex
	url     string
	token   string
	flights map[string]*flight // by id, as the client wrote it
	session session
	renewal chan struct{} // closed when the renewal that is under way ends; nil: none is
}

// Run passes messages until stdin ends, every call that was read is answered and the answers are
// written; or until ctx is done, or stdout cannot be written. Messages are lines of JSON; nothing
// else is ever written to stdout. An invalid line is answered with a JSON-RPC error. Run returns
// nil at the end of stdin, else ctx's or stdout's error, or that an option is wrong.
//
// When ctx ends while stdin is being read, the goroutine that reads it ends with
// the next line, or when stdin does.
func Run(ctx context.Context, stdin io.Reader, stdout io.Writer, o Options) error {
	if !isURL(o.URL) {
		return fmt.Errorf("the server's address %q is not an http or https URL", o.URL)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	b := &bridge{
		url: o.URL, token: o.Token, find: o.Find, http: o.HTTP, log: o.Logger, most: o.MaxMessage, patience: o.Patience,
		starting: o.StartPatience, remedy: o.Remedy,
		out: &writer{w: stdout, broken: cancel}, flights: make(map[string]*flight), heard: make(chan session, 1),
	}
	if b.patience <= 0 {
		b.patience = defaultPatience
	}
	if b.starting <= 0 {
		b.starting = defaultStartPatience
	}
	if b.http == nil {
		transport := http.DefaultTransport.(*http.Transport).Clone()
		transport.DialContext = (&net.Dialer{Timeout: connectBound}).DialContext
		transport.TLSHandshakeTimeout = connectBound
		transport.MaxIdleConnsPerHost = 64
		// A server that refuses a message unread may say so only when this has
		// passed; and one that is slow to ask for it loses nothing but the check.
		transport.ExpectContinueTimeout = expectBound
		defer transport.CloseIdleConnections()
		b.http = &http.Client{Transport: transport}
	}
	if b.log == nil {
		b.log = slog.New(slog.DiscardHandler)
	}
	if b.most <= 0 {
		b.most = defaultMaxMessage
	}
	lctx, stopListening := context.WithCancel(ctx)
	var listening sync.WaitGroup
	listening.Go(func() { b.listening(lctx) })
	err := b.pump(ctx, stdin)
	if err == nil {
		b.unsubscribe()
		b.wg.Wait() // ends early when ctx does
		err = context.Cause(ctx)
	}
	stopListening()
	cancel(nil)
	b.wg.Wait()
	listening.Wait()
	b.part(b.left())
	return err
}

func isURL(s string) bool {
	u, err := url.Parse(s)
	return err == nil && u.Host != "" && (u.Scheme == "http" || u.Scheme == "https")
}

// place is where the server is, as far as is known.
func (b *bridge) place() (url, token string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.url, b.token
}

// look asks where the server is now.
func (b *bridge) look() {
	if b.find == nil {
		return
	}
	url, token, ok := b.find()
	if !ok || !isURL(url) {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if url != b.url {
		b.log.Info("the server is elsewhere now", "url", url)
	}
	b.url, b.token = url, token
}

// pump reads stdin to its end. Each message is dealt with in order as far as
// order matters.
func (b *bridge) pump(ctx context.Context, stdin io.Reader) error {
	lines := make(chan line)
	go readLines(ctx, stdin, b.most, lines)
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case l, ok := <-lines:
			if !ok {
				return nil
			}
			if l.err != nil {
				if errors.Is(l.err, io.EOF) {
					return nil
				}
				if l.fatal {
					return l.err
				}
				b.out.write(errorReply(nil, codeParse, l.err.Error()))
				continue
			}
			b.take(ctx, l.data)
		}
	}
}

// left returns the calls that the server works at and whose client is gone; the flights have
// ended. In the new era they end with their requests.
func (b *bridge) left() (ids []json.RawMessage) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, f := range b.flights {
		if !f.modern && f.wasSent() {
			ids = append(ids, f.id)
		}
	}
	return ids
}

// part cancels what is left and ends the session, so that the server need not
// wait for its timeout.
func (b *bridge) part(left []json.RawMessage) {
	s := b.current()
	if s.id == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), partingBound)
	defer cancel()
	for _, id := range left {
		x := &attempt{b: b, m: &message{Method: methodCancelled}, session: s}
		data := append(append([]byte(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`), id...), "}}"...)
		if err := x.post(ctx, data); err != nil {
			b.log.Warn("a call that nobody waits for was not cancelled", "error", err)
		}
	}
	req, err := b.request(ctx, http.MethodDelete, nil)
	if err != nil {
		return
	}
	s.set(req.Header)
	if resp, err := b.http.Do(req); err == nil {
		_ = resp.Body.Close()
	}
}
