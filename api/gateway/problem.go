// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"net/http"
	"strings"

	"sandpit.dev/api/guard"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/fault"
	"sandpit.dev/skill"
)

// problem is the body of an error.
type problem struct {
	Error problemBody `json:"error"`
}

type problemBody struct {
	Code    string         `json:"code"`
	Message string         `json:"message"` // with what to do
	Details map[string]any `json:"details"`
}

// status returns the status of an error: the SDK raises a class of its own for 401, 403, 404, 409, 422 and 429.
func status(err error) int {
	switch e := fault.As(err); e.Code {
	case fault.Malformed, fault.Invalid, fault.TooLarge, fault.Unsupported:
		return http.StatusUnprocessableEntity
	case fault.PreconditionFailed:
		return http.StatusConflict
	case fault.Full:
		if e.Disk == fault.SandboxDisk {
			return http.StatusUnprocessableEntity
		}
		return http.StatusServiceUnavailable
	case fault.Unauthenticated, fault.Denied, fault.NotFound, fault.Exists, fault.Conflict, fault.State, fault.Exhausted, fault.Unavailable, fault.Timeout, fault.Canceled, fault.Internal:
		return guard.Status(e.Code)
	}
	return http.StatusInternalServerError
}

// skillCode returns the code of an error about a skill for which the SDK has a class; "": none.
func skillCode(reason string) string {
	switch reason {
	case skill.ReasonNoFile:
		return "skill-file-missing"
	case skill.ReasonManyFiles:
		return "skill-file-ambiguous"
	case skill.ReasonFrontMatter:
		return "skill-malformed-frontmatter"
	case skill.ReasonNoField:
		return "skill-frontmatter-missing-field"
	}
	return ""
}

// answerError answers a request with err. One that has a finer status than its code's keeps it.
func answerError(w http.ResponseWriter, r *http.Request, err error) {
	if p, _ := guard.Problem(err, ""); p.Status == guard.Status(fault.As(err).Code) {
		err = guard.WithStatus(status(err), err)
	}
	guard.ErrorAs(w, r, err, "application/json", func(p v1.Problem) any {
		message := p.Detail
		for _, f := range p.Errors {
			if text := f.Field + ": " + f.Message; !strings.Contains(message, f.Message) {
				message += "; " + text
			}
		}
		if p.Remedy != "" {
			message += "; " + p.Remedy
		}
		details := map[string]any{"request_id": p.RequestID}
		if code := skillCode(p.Reason); code != "" {
			p.Code = code
		}
		if len(p.Errors) > 0 {
			details["fields"] = p.Errors
		}
		return problem{problemBody{Code: p.Code, Message: message, Details: details}}
	})
}
