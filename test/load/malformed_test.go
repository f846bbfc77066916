// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package load_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sandpit.dev/access"
	v1 "sandpit.dev/api/v1"
)

// seed is what a campaign's requests are made of: always the same, but for the long form.
func seed(t *testing.T) uint64 {
	n := uint64(2026)
	if soak() {
		n = rand.Uint64()
	}
	t.Logf("the requests are those of the seed %d", n)
	return n
}

// patience is how long a request of a campaign waits: what takes longer is what a caller asked to wait for,
// and ends with the connection.
const patience = time.Second

// campaign sends requests to a server and holds that each is answered as a mistake of the caller's, or done.
type campaign struct {
	h     *host
	token string // of a project's administrator
	words []string

	mu       sync.Mutex
	box      string
	statuses map[string]int
}

// openCampaign makes a token and a sandbox for hostile requests.
func openCampaign(t *testing.T, h *host) *campaign {
	t.Helper()
	made, err := h.client.CreateToken(t.Context(), v1.CreateToken{Name: "hostile", Scopes: []string{string(access.Admin)}})
	if err != nil {
		t.Fatal(err)
	}
	c := &campaign{h: h, token: made.Secret, statuses: map[string]int{}}
	c.words = []string{h.token, made.Secret, h.dir, h.images, "goroutine 1", "runtime error: ", "the server has a fault"}
	c.renew(t.Context())
	return c
}

// renew makes the sandbox that requests name, where they deleted it.
func (c *campaign) renew(ctx context.Context) {
	if box, _, err := c.h.client.Create(ctx, v1.CreateSandbox{Key: new("hostile")}); err == nil {
		c.mu.Lock()
		c.box = box.ID
		c.mu.Unlock()
	}
}

// target is the sandbox of requests.
func (c *campaign) target() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.box
}

// sourceLine is a place in a program, which no answer names.
var sourceLine = regexp.MustCompile(`\.go:[0-9]+`)

// answered holds what came of a request, which is nothing where err is that of its end.
func (c *campaign) answered(what string, status int, body []byte, sent string) error {
	c.mu.Lock()
	c.statuses[fmt.Sprint(status/100, "xx")]++
	if status >= 500 {
		c.statuses[fmt.Sprint(status)]++
	}
	c.mu.Unlock()
	if status == http.StatusInternalServerError || status == http.StatusBadGateway {
		return fmt.Errorf("%s: got %d %.300s\nof %.2000q", what, status, body, sent)
	}
	for _, w := range c.words {
		if w == c.h.images && strings.HasSuffix(what, "imageLog") {
			continue // what the host's own package manager said of a build
		}
		if bytes.Contains(body, []byte(w)) && !strings.Contains(sent, w) {
			return fmt.Errorf("%s: the answer %d has %q in it: %.300s\nof %.2000q", what, status, w, body, sent)
		}
	}
	if at := sourceLine.Find(body); at != nil && !bytes.Contains([]byte(sent), at) {
		return fmt.Errorf("%s: the answer %d names %q of a program: %.300s", what, status, at, body)
	}
	return nil
}

// over holds that the server is as it was before.
func (c *campaign) over(t *testing.T, idle int) {
	t.Helper()
	h := c.h
	ctx := context.WithoutCancel(t.Context())
	h.http.CloseIdleConnections()
	t.Logf("answers: %v", c.statuses)
	if c.statuses["4xx"] == 0 || c.statuses["2xx"] == 0 {
		t.Error("nothing was refused, or nothing was done: the requests try nothing")
	}
	if err := h.deleteAll(ctx); err != nil {
		t.Error(err)
	}
	// A request that waits ends with its connection; then nothing that it began is left.
	limit, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for now := h.goroutines(ctx); now > idle+4; now = h.goroutines(ctx) { // those of this very question
		select {
		case <-tick.C:
		case <-limit.Done():
			t.Fatalf("before there were %d goroutines, and %s after it %d", idle, settleTime, now)
		}
		h.http.CloseIdleConnections()
	}
	if err := h.cycle(ctx); err != nil {
		t.Errorf("the server does not go on: %v", err)
	}
	log, err := os.ReadFile(h.dir + "/server.log")
	if err != nil || bytes.Contains(log, []byte("panic")) {
		t.Errorf("the server panicked (%v):\n%.3000s", err, log[max(0, bytes.Index(log, []byte("panic"))):])
	}
}

// unsent are operations that are sent without a body that could be right: what they do takes minutes or asks
// registries.
var unsent = []string{"buildDockerfile", "buildImage", "importImage", "pullImage", "createTemplate", "gitClone"}

// route is one operation of the document.
type route struct {
	id, method, path string
	params           []parameter
	media            string
	body             map[string]any // its schema
	example          any
}

type parameter struct {
	Name, In string
	Schema   map[string]any
}

// routes reads the document that the server serves.
func (h *host) routes(t *testing.T) (list []route, schemas map[string]any) {
	t.Helper()
	var doc struct {
		Paths      map[string]map[string]json.RawMessage
		Components struct{ Schemas map[string]any }
	}
	status, body, err := h.get(t.Context(), "/v1/openapi.json")
	if err == nil {
		err = json.Unmarshal([]byte(body), &doc)
	}
	if err != nil || status != http.StatusOK {
		t.Fatalf("the document: %d, %v", status, err)
	}
	for _, path := range slices.Sorted(maps.Keys(doc.Paths)) {
		for _, method := range slices.Sorted(maps.Keys(doc.Paths[path])) {
			var o struct {
				OperationID string
				Parameters  []parameter
				RequestBody struct {
					Content map[string]struct{ Schema, Example any }
				}
			}
			if err := json.Unmarshal(doc.Paths[path][method], &o); err != nil {
				t.Fatal(method, path, err)
			}
			if o.OperationID == "" {
				continue // what the path says of all its operations
			}
			r := route{id: o.OperationID, method: strings.ToUpper(method), path: path, params: o.Parameters}
			for media, c := range o.RequestBody.Content {
				r.media, r.example = media, c.Example
				r.body, _ = c.Schema.(map[string]any)
			}
			list = append(list, r)
		}
	}
	return list, doc.Components.Schemas
}

// Whatever a caller sends, it is told what is wrong with it, or it is done: the server has no fault, tells no
// secret of its own, and holds nothing afterwards.
func TestMalformedRequestsOfREST(t *testing.T) {
	h := open(t)
	c := openCampaign(t, h)
	list, schemas := h.routes(t)
	if len(list) < 100 {
		t.Fatalf("the document has %d operations", len(list))
	}
	idle := h.goroutines(t.Context())
	from := seed(t)
	requests := group{limit: 8}
	for n := range length(3000, 10_000) {
		if n%100 == 0 {
			c.renew(t.Context())
		}
		requests.do(func() error {
			m := &mutator{rand.New(rand.NewPCG(from, uint64(n))), schemas, c.target()}
			o := list[n%len(list)] // each as often as any other
			head, body := m.request(o, c.token)
			return c.send(t.Context(), fmt.Sprintf("request %d, %s", n, o.id), head, body)
		})
	}
	if err := requests.wait(); err != nil {
		t.Error(err)
	}
	c.over(t, idle)
}

// send sends bytes as a connection of their own, since no client would send what they are, and reads one answer.
func (c *campaign) send(ctx context.Context, what string, head, body []byte) error {
	u, err := url.Parse(c.h.url)
	if err != nil {
		return err
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", u.Host)
	if err != nil {
		return err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	sent := append(slices.Clone(head), body...)
	if _, err := conn.Write(sent); err != nil {
		return nil // it refused before it had all
	}
	method, _, _ := strings.Cut(string(head), " ")
	resp, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: method})
	if err != nil {
		if resp == nil && !errors.Is(err, os.ErrDeadlineExceeded) && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
			return fmt.Errorf("%s: the answer is none of HTTP: %w, to %.500q", what, err, sent)
		}
		return nil // a wait, which ends with the connection
	}
	defer resp.Body.Close()
	got, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<20)) // streams end with the connection
	return c.answered(what, resp.StatusCode, append(got, fmt.Sprint(resp.Header)...), string(sent))
}
