// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package tokens

import (
	"net/http"

	"sandpit.dev/access"
	"sandpit.dev/api/httpapi"
	"sandpit.dev/api/rest/idempotency"
	"sandpit.dev/api/service"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/store/keyed"
)

// API serves the operations on tokens. It is safe for concurrent use.
type API struct {
	Tokens    Tokens                // required
	Sandboxes service.SandboxTokens // nil: single sandboxes have no tokens
	Projects  service.Projects      // nil: whoami does not say what quotas leave
}

// Operations returns the rows of the coat's table that the API serves.
func (a *API) Operations() []httpapi.Operation {
	return []httpapi.Operation{
		idempotency.Op("whoami", "GET /whoami", "Which token this request has, and what it may do. Any valid token may ask.", http.StatusOK, a.whoami),
		idempotency.Op("listTokens", "GET /tokens", "List tokens.", http.StatusOK, a.listTokens),
		idempotency.Op("createToken", "POST /tokens", "Make a token.", http.StatusCreated, a.createToken).
			Example(v1.CreateToken{Name: "laptop", Scopes: []string{"sandboxes:read", "sandboxes:write"}}).
			Extend(idempotency.Keying{Scope: access.Admin, Makes: []keyed.Kind{keyed.Token}, Own: true}),
		idempotency.Op("rotateToken", "POST /tokens/{id}/rotate", "Give a token, by its id or its name, another secret. The one before it stays valid for a grace, and both are the same token.", http.StatusOK, a.rotateToken).
			Example(v1.RotateToken{GraceSeconds: new(int64(600))}).
			Extend(idempotency.Keyless("the second makes another secret, and the ones before it stay valid for the grace")),
		idempotency.Op("createSandboxToken", "POST /sandboxes/{id}/tokens", "Make a token that is good for one sandbox. Nothing is stored of it, and it ends with the sandbox, or by rotateSandboxTokens.", http.StatusCreated, a.createSandboxToken).
			Example(v1.CreateSandboxToken{Name: "agent", Scopes: []string{"read", "write"}, ExpiresInSeconds: new(int64(3600))}).
			Extend(idempotency.Keyless("a token is a signature: nothing is made")),
		idempotency.Op("rotateSandboxTokens", "POST /sandboxes/{id}/tokens/rotate", "End all tokens of a sandbox, with the streams, terminals and connections that they have open. Tokens that are made from then on are valid.", http.StatusNoContent, a.rotateSandboxTokens).
			Extend(idempotency.Keyless("it makes nothing")),
		idempotency.Op("deleteToken", "DELETE /tokens/{id}", "End a token, by its id or its name.", http.StatusNoContent, a.deleteToken),
	}
}
