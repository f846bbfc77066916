// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"context"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sandpit.dev/api/guard"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/engine"
	"sandpit.dev/runtime"
)

// steered is a driver whose instances have a network in which nothing is sent.
type steered struct{ runtime.Driver }

func (d steered) Create(ctx context.Context, s runtime.Spec) (runtime.Instance, error) {
	i, err := d.Driver.Create(ctx, s)
	if err != nil {
		return nil, err
	}
	return quietInstance{i}, nil
}

func (d steered) Open(ctx context.Context, h runtime.Handle) (runtime.Instance, error) {
	i, err := d.Driver.Open(ctx, h)
	if err != nil {
		return nil, err
	}
	return quietInstance{i}, nil
}

type quietInstance struct{ runtime.Instance }

func (quietInstance) Steer(context.Context) (runtime.Traffic, error) {
	return &quiet{closed: make(chan struct{})}, nil
}

type quiet struct {
	once   sync.Once
	closed chan struct{}
}

func (q *quiet) Accept() (runtime.Conn, error) { return nil, q.Wait() }

func (q *quiet) Wait() error {
	<-q.closed
	return net.ErrClosed
}

func (q *quiet) Read([]byte) (int, netip.AddrPort, netip.AddrPort, error) {
	return 0, netip.AddrPort{}, netip.AddrPort{}, q.Wait()
}

func (q *quiet) Lost() int64 { return 0 }

func (q *quiet) Answer([]byte, netip.Addr, netip.AddrPort) error { return nil }

func (q *quiet) Answering(_, _ netip.AddrPort) (net.Conn, error) { return nil, net.ErrClosed }

func (q *quiet) Close() error {
	q.once.Do(func() { close(q.closed) })
	return nil
}

func TestHeadersOfHosts(t *testing.T) {
	t.Parallel()
	h := openEngine(t, guard.Options{}, func(o *engine.Options) { o.Runtimes["memory"] = steered{o.Runtimes["memory"]} })
	shown := func(s v1.Sandbox, want map[string]map[string]string) {
		t.Helper()
		if diff := cmp.Diff(want, s.NetworkPolicy.Headers); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	}
	network := func(headers any) object {
		return object{"mode": "restricted", "allow_domains": []string{"*.example.org"}, "headers": headers}
	}
	body := object{"key": "web", "network": network(object{"API.example.org": object{"X-Org": "acme"}})}
	first := map[string]map[string]string{"api.example.org": {"x-org": "acme"}}
	shown(want[v1.Sandbox](h, 201, "POST", "/v1/sandboxes", body), first)
	shown(want[v1.Sandbox](h, 200, "POST", "/v1/sandboxes", body), first) // the same again, in another spelling than is kept
	shown(want[v1.Sandbox](h, 200, "GET", "/v1/sandboxes/web", nil), first)
	second := map[string]map[string]string{"*.example.org": {"user-agent": "agent/1", "x-org": "other"}}
	shown(want[v1.Sandbox](h, 200, "PATCH", "/v1/sandboxes/web", object{"network": network(second)}), second)
	for name, c := range map[string]struct {
		headers any
		says    string
	}{
		"a line end":    {object{"api.example.org": object{"x-org": "a\r\nHost: b"}}, "line ends"},
		"a bad name":    {object{"api.example.org": object{"x org": "a"}}, "RFC 9110"},
		"framing":       {object{"api.example.org": object{"Content-Length": "1"}}, "how a request is carried"},
		"a credential":  {object{"api.example.org": object{"Authorization": "Bearer x"}}, "credential"},
		"no text":       {object{"api.example.org": object{"x-org": 1}}, "is no text"},
		"no object":     {object{"api.example.org": "x-org: a"}, "is not an object"},
		"no hosts":      {[]string{"x-org"}, "is not an object"},
		"an address":    {object{"192.0.2.1": object{"x-org": "a"}}, "192.0.2.1"},
		"a long value":  {object{"api.example.org": object{"x-org": strings.Repeat("a", 1025)}}, "1025 bytes"},
		"two spellings": {object{"api.example.org": object{"x-org": "a", "X_Org": "b"}}, "twice"},
	} {
		p := want[v1.Problem](h, 422, "PATCH", "/v1/sandboxes/web", object{"network": network(c.headers)})
		if p.Code != "invalid" || len(p.Errors) == 0 || !strings.HasPrefix(p.Errors[0].Field, "network.headers") || !strings.Contains(p.Errors[0].Message, c.says) {
			t.Errorf("%s: got %+v", name, p)
		}
	}
	p := want[v1.Problem](h, 422, "PATCH", "/v1/sandboxes/web", object{"network": object{"mode": "off", "headers": first}})
	if len(p.Errors) != 1 || p.Errors[0].Field != "network.headers" {
		t.Errorf("in mode off: got %+v", p)
	}
	shown(want[v1.Sandbox](h, 200, "GET", "/v1/sandboxes/web", nil), second) // what is refused loses nothing
	shown(want[v1.Sandbox](h, 200, "PATCH", "/v1/sandboxes/web", object{"network": network(nil)}), nil)
}
