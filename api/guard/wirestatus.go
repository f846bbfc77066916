// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"net/http"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/fault"
)

// ByTable returns err with the status that a wire's own table has for it, unless it has a finer one than its code's already.
func ByTable(err error, table func(error) int) error {
	if p, _ := Problem(err, ""); p.Status == Status(fault.As(err).Code) {
		return WithStatus(table(err), err)
	}
	return err
}

// Unprocessable is the table of wires whose clients have a class of errors for 422, and none for 400, 412, 413, 501 and 507.
func Unprocessable(err error) int {
	switch e := fault.As(err); {
	case e.Code == fault.Malformed || e.Code == fault.Invalid || e.Code == fault.TooLarge || e.Code == fault.Unsupported:
		return http.StatusUnprocessableEntity
	case e.Code == fault.PreconditionFailed:
		return http.StatusConflict
	case e.Code == fault.Full && e.Disk == fault.SandboxDisk:
		return http.StatusUnprocessableEntity
	case e.Code == fault.Full:
		return http.StatusServiceUnavailable
	default:
		return Status(e.Code)
	}
}

// Text returns a problem as one text: what is wrong, and what to do.
func Text(p v1.Problem) string {
	if p.Remedy == "" {
		return p.Detail
	}
	return p.Detail + "; " + p.Remedy
}
