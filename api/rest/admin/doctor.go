// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"

	"sandpit.dev/access"
	"sandpit.dev/api/httpapi"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/doctor"
	"sandpit.dev/fault"
)

func (a *API) getDoctor(ctx context.Context, c *httpapi.Call, _ *httpapi.NoInput) (v1.DoctorReport, error) {
	if err := c.Caller.Require(access.ServerAdmin); err != nil { // others do not learn even whether there is one
		return v1.DoctorReport{}, err
	}
	if a.Doctor == nil {
		return v1.DoctorReport{}, fault.New(fault.Unsupported, "this server does not check its host").WithRemedy("run sandpit doctor on the host")
	}
	r, err := a.Doctor.Report(ctx, c.Caller)
	if err != nil {
		return v1.DoctorReport{}, err
	}
	out := v1.DoctorReport{Time: r.At.UTC(), TookMS: r.Took.Milliseconds(), Status: string(r.Worst()), Items: make([]v1.Finding, len(r.Findings))}
	for n, f := range r.Findings {
		out.Items[n] = v1.Finding{Name: f.Name, Status: string(f.Status), Detail: f.Detail, Remedy: f.Remedy}
		switch f.Status {
		case doctor.Warned:
			out.Warnings++
		case doctor.Failed:
			out.Failures++
		}
	}
	return out, nil
}
