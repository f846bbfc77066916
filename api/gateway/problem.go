// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"cmp"
	"net/http"

	"sandpit.dev/api/guard"
	v1 "sandpit.dev/api/v1"
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

// answerError answers a request with err.
func answerError(w http.ResponseWriter, r *http.Request, err error) {
	guard.ErrorAs(w, r, guard.ByTable(err, guard.Unprocessable), "application/json", func(p v1.Problem) any {
		details := map[string]any{"request_id": p.RequestID}
		if len(p.Errors) > 0 {
			details["fields"] = p.Errors
		}
		return problem{problemBody{Code: cmp.Or(skillCode(p.Reason), p.Code), Message: guard.Text(p), Details: details}}
	})
}
