// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"context"
	"net/http"
	"os"
	"strings"
	"testing"

	"sandpit.dev/access"
	"sandpit.dev/api/rest"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/doctor"
)

func TestTheDoctorIsForWhoRunsTheServer(t *testing.T) {
	t.Parallel()
	place := t.TempDir()
	checks := doctor.New([]doctor.Check{{Name: "place", Look: func(context.Context) []doctor.Finding {
		if _, err := os.Stat(place); err != nil {
			return []doctor.Finding{{Name: "place", Status: doctor.Failed, Detail: err.Error(), Remedy: "make it"}}
		}
		return []doctor.Finding{{Name: "place", Status: doctor.Passed, Detail: "it is there"}}
	}}, {Name: "warns", Look: func(context.Context) []doctor.Finding {
		return []doctor.Finding{{Name: "warns", Status: doctor.Warned, Detail: "so so", Remedy: "mend it"}}
	}}}, doctor.Options{})
	t.Cleanup(func() { _ = checks.Close(context.Background()) })
	h := open(t, func(o *rest.Options) { o.Services.Doctor = checks })
	r := want[v1.DoctorReport](h, http.StatusOK, "GET", "/v1/doctor", nil)
	if len(r.Items) != 2 || r.Items[0] != (v1.Finding{Name: "place", Status: "ok", Detail: "it is there"}) || r.Items[1].Remedy != "mend it" || r.Status != "warning" || r.Warnings != 1 || r.Failures != 0 || r.Time.IsZero() {
		t.Errorf("got %+v", r)
	}
	must(t, os.Remove(place))
	if r := want[v1.DoctorReport](h, http.StatusOK, "GET", "/v1/doctor", nil); r.Status != "failed" || r.Failures != 1 || r.Items[0].Remedy != "make it" {
		t.Errorf("got %+v", r)
	}
	for _, scope := range []access.Scope{access.Admin, access.SandboxesWrite, access.SandboxesRead} {
		if a := h.as("red", scope).do("GET", "/v1/doctor", nil); a.StatusCode != http.StatusForbidden || !strings.Contains(string(a.body), "concerns the whole server") || strings.Contains(string(a.body), "so so") {
			t.Errorf("%s: %s %s", scope, a.Status, a.body)
		}
	}
	if a := open(t).do("GET", "/v1/doctor", nil); a.StatusCode != http.StatusNotImplemented || !strings.Contains(string(a.body), "unsupported") {
		t.Errorf("without one: %s %s", a.Status, a.body)
	}
}
