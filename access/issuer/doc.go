// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package issuer turns tokens of external issuers into callers: JSON Web Tokens (RFC 7519) that an
// authorization server signs, and whose keys it publishes (JWKS, RFC 7517). Nothing is kept of them:
// a token is right or not by its signature, its claims and the clock.
//
// It does not know HTTP's requests, nor the server's own tokens (access/bearer). A token of an issuer
// never has the scope server:admin.
//
// What a token says of itself chooses nothing but which issuer and which key it is checked against,
// both by comparison with what is configured or published: the header's algorithm has to be one of a
// list, without any that is symmetric, and the one that the key is for; keys and addresses within the
// header (jwk, jku, x5c, x5u) are not read.
package issuer
