// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"net/http"
	"strings"

	"sandpit.dev/access"
	"sandpit.dev/fault"
)

// maxToken is longer than any token that there is.
const maxToken = 512

func (g *Guard) authenticate(r *http.Request) (access.Caller, error) {
	const remedy = "send the header Authorization: Bearer TOKEN, for which commands of sandpit take SANDPIT_TOKEN; sandpit token create makes a token"
	headers := r.Header["Authorization"]
	switch {
	case len(headers) == 0:
		return access.Caller{}, fault.New(fault.Unauthenticated, "the request has no token").WithRemedy(remedy)
	case len(headers) > 1:
		return access.Caller{}, fault.New(fault.Unauthenticated, "the request has %d Authorization headers", len(headers)).WithRemedy(remedy)
	}
	scheme, token, _ := strings.Cut(headers[0], " ")
	token = strings.Trim(token, " ")
	// What was sent is not repeated: it may be a secret of another server.
	if !strings.EqualFold(scheme, "Bearer") || token == "" {
		return access.Caller{}, fault.New(fault.Unauthenticated, "the Authorization header is not of the form Bearer TOKEN").WithRemedy(remedy)
	}
	if len(token) > maxToken || strings.ContainsFunc(token, func(c rune) bool { return c <= ' ' || c > '~' }) {
		return access.Caller{}, fault.New(fault.Unauthenticated, "the token has %d bytes or odd characters; no token of this server does", len(token)).WithRemedy(remedy)
	}
	return g.tokens.Check(r.Context(), token)
}
