// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"net/http"
	"strings"

	"sandpit.dev/access"
	"sandpit.dev/fault"
)

// maxToken is longer than any valid token: those of external issuers carry what they say.
const maxToken = 8 << 10

func (g *Guard) authenticate(w http.ResponseWriter, r *http.Request) (_ access.Caller, valid context.Context, release func(), _ error) {
	const remedy = "send the header Authorization: Bearer TOKEN, for which commands of sandpit take SANDPIT_TOKEN; sandpit token create makes a token"
	none := func(format string, args ...any) (access.Caller, context.Context, func(), error) {
		return access.Caller{}, nil, nil, fault.New(fault.Unauthenticated, format, args...).WithRemedy(remedy)
	}
	headers := r.Header["Authorization"]
	switch {
	case len(headers) == 0:
		return none("the request has no token")
	case len(headers) > 1:
		return none("the request has %d Authorization headers", len(headers))
	}
	scheme, token, _ := strings.Cut(headers[0], " ")
	token = strings.Trim(token, " ")
	// What was sent is not repeated: it may be a secret of another server.
	if !strings.EqualFold(scheme, "Bearer") || token == "" {
		return none("the Authorization header is not of the form Bearer TOKEN")
	}
	if len(token) > maxToken || strings.ContainsFunc(token, func(c rune) bool { return c <= ' ' || c > '~' }) {
		return none("the token has %d bytes or odd characters; no token of this server does", len(token))
	}
	c, valid, release, err := g.tokens.Admit(r.Context(), token)
	if fault.Is(err, fault.Unauthenticated) {
		err = g.Guessed(w, r, err)
	}
	return c, valid, release, err
}
