// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"sandpit.dev/engine"
	"sandpit.dev/network/egress"
	"sandpit.dev/network/policy"
	"sandpit.dev/sandbox"
)

// anywhere has every name stand for one public address.
type anywhere struct{ *net.Resolver }

func (anywhere) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return []netip.Addr{netip.MustParseAddr("93.184.216.34")}, nil
}

// The operator's bound on names that are made up is the one that gates have.
func TestNamesAreBoundedByTheOperator(t *testing.T) {
	t.Parallel()
	h, w := wire(t, func(o *engine.Options) {
		o.Network.Resolver = anywhere{net.DefaultResolver}
		o.Network.Quota = egress.Quota{Names: 2, NamesPerMinute: 1, Questions: 100, QuestionsPerMinute: 1}
	})
	h.create(engine.CreateRequest{Key: "net", Network: &sandbox.NetworkPolicy{Mode: sandbox.NetworkRestricted, AllowDomains: []string{"*.made.example"}}})
	for n := range 3 {
		c, err := net.Dial("tcp", w.open()[0].l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		_ = c.SetDeadline(time.Now().Add(10 * time.Second))
		if _, err := fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost: n%d.made.example\r\n\r\n", n); err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, c)
		_ = c.Close()
	}
	log, err := h.engine.NetworkLog(t.Context(), alice, "net")
	if err != nil {
		t.Fatal(err)
	}
	reasons := map[policy.Reason]int64{}
	for _, e := range log.Entries {
		reasons[e.Reason] += e.Count
	}
	if reasons[policy.Disagreement] != 2 || reasons[policy.Names] != 1 || !slices.ContainsFunc(log.Entries, func(e egress.Entry) bool { return e.Name == "*.made.example" }) {
		t.Errorf("of three names, of which two may be asked for, the record has %+v", log.Entries)
	}
}
