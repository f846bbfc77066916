// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package guard is what every request passes before a coat sees it: it gets an
// id, its Host and Origin are checked, its bearer token becomes an
// access.Caller, its body gets a bound, a panic becomes an answer, and one line
// in the log and one measurement record it. It also writes errors, the same way for all coats
// that speak HTTP.
//
// The order matters. The id comes first, so that every refusal has one. Host
// and Origin come before the token, so that a page in a browser that was led
// here by a rebound name learns nothing, not even whether a token is valid.
//
// It does not know sandboxes or what a request asks for.
package guard
