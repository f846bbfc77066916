// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"slices"
	"strings"
	"testing"

	"sandpit.dev/fault"
)

func TestHeadersOfStandIns(t *testing.T) {
	normal := func(headers []string) ([]string, error) {
		s, err := Secret{Name: "KEY", Hosts: []string{"a.example"}, StandInHeaders: headers}.Normal()
		return s.StandInHeaders, err
	}
	if got, err := normal([]string{"X-Own", "x-own", "Authorization"}); err != nil || !slices.Equal(got, []string{"x-own", "authorization"}) {
		t.Errorf("got %q, %v", got, err)
	}
	if got, err := normal(nil); err != nil || got != nil {
		t.Errorf("left out: %q, %v", got, err)
	}
	if got, err := normal([]string{}); err != nil || got == nil || len(got) > 0 {
		t.Errorf("none: %q, %v", got, err)
	}
	if got, err := normal(UsualStandInHeaders()[:MaxStandInHeaders]); err != nil || len(got) != MaxStandInHeaders {
		t.Errorf("usual ones: %q, %v", got, err)
	}
	for _, h := range UsualStandInHeaders() {
		if _, err := normal([]string{h}); err != nil {
			t.Errorf("%s is usual, and refused: %v", h, err)
		}
	}
	for _, bad := range []string{
		"Origin", "Referer", "Cookie", "X-Request-Id", "x_request_id", "Accept", "Accept-Language", "If-None-Match", "Sec-WebSocket-Protocol", "Access-Control-Request-Headers",
		"Content-Type", "Host", "Content-Length", "Transfer-Encoding", "Proxy-Authorization", "traceparent", "User-Agent", "X-Forwarded-For", "", "a b", "a:b", "a\n", "\u00e4", strings.Repeat("a", 129),
	} {
		if got, err := normal([]string{bad}); fault.Of(err) != fault.Invalid || fault.As(err).Fields[0].Name != "stand_in_headers" {
			t.Errorf("%q is taken as %q: %v", bad, got, err)
		}
	}
	if _, err := normal(slices.Repeat([]string{"x-a"}, MaxStandInHeaders+1)); fault.Of(err) != fault.Invalid {
		t.Errorf("too many: %v", err)
	}
	if _, err := (Secret{Name: "KEY", StandInHeaders: []string{"x-a"}}).Normal(); fault.Of(err) != fault.Invalid {
		t.Errorf("without hosts: %v", err)
	}
}
