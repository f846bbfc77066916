// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daytona_test

import (
	"net/http"
	"strings"
	"testing"
)

func TestFiguresOfATimeThatIsNoneAreRefused(t *testing.T) {
	h := open(t)
	h.create(`{"name":"box","networkBlockAll":true}`)
	for _, c := range []struct{ query, field string }{
		{"from=yesterday", "from"},
		{"to=2026-13-01T00:00:00Z", "to"},
		{"from=2026-01-02T00:00:00Z&to=2026-01-01T23:59:59.999999%2B0000", "to"},
		{strings.Repeat("metricNames=x&", 101), "metricNames"},
	} {
		p := h.refused("writer", "GET", "/sandbox/box/telemetry/metrics?"+c.query, "")
		if p.StatusCode != http.StatusBadRequest || !strings.HasPrefix(p.Message, c.field+":") {
			t.Errorf("%.60s: got %+v", c.query, p)
		}
	}
	for _, kind := range []string{"logs", "traces"} {
		if p := h.refused("writer", "GET", "/sandbox/box/telemetry/"+kind, ""); p.StatusCode != http.StatusUnprocessableEntity {
			t.Errorf("%s: got %+v", kind, p)
		}
	}
}
