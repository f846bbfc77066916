// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package access holds who may do what: scopes, the caller of every verb, and the record of a
// bearer token. It is plain data with its rules. It does not know where tokens are kept (store),
// how a credential becomes a caller (access/bearer) or what a request looks like (api).
package access
