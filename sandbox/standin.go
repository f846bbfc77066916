// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"slices"
	"strings"

	"sandpit.dev/fault"
)

// MaxStandInHeaders is how many headers a secret may name in which its stand-in is replaced.
const MaxStandInHeaders = 16

// UsualStandInHeaders returns the request headers in which stand-ins are replaced where a secret names none:
// those that clients of common services have their key in.
func UsualStandInHeaders() []string {
	return []string{
		"authorization", "api-key", "apikey", "x-api-key", "x-apikey", "x-auth-key", "x-auth-token", "x-access-token", "x-token",
		"private-token", "job-token", "deploy-token", "circle-token", "x-goog-api-key", "x-rapidapi-key", "x-subscription-token",
		"ocp-apim-subscription-key", "x-functions-key", "x-vault-token", "x-shopify-access-token", "x-figma-token", "dd-api-key", "dd-application-key",
	}
}

// checkStandInHeaders returns header names in lower case; nil stays: it means the usual ones.
func checkStandInHeaders(names []string) ([]string, error) {
	const field = "stand_in_headers"
	if len(names) > MaxStandInHeaders {
		return nil, fault.InvalidField(field, "has %d names, more than %d", len(names), MaxStandInHeaders)
	}
	if names == nil {
		return nil, nil
	}
	out := make([]string, 0, len(names))
	for _, n := range names {
		n = strings.ToLower(n)
		if err := checkSecretHeader(n); err != nil {
			return nil, fault.InvalidField(field, "%s", fault.As(err).Fields[0].Message)
		}
		if sentBack(n) {
			return nil, fault.InvalidField(field, "%q is a header that hosts send back, or that others see; it takes no secret", Clip(n, 80))
		}
		if !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out, nil
}

// sentBack reports whether hosts repeat a request header in their answers as a rule, or browsers' rules are made
// of it: a value there would be told.
func sentBack(name string) bool {
	name = strings.ReplaceAll(name, "_", "-")
	for _, p := range []string{"accept", "if-", "sec-", "access-control-", "content-", "x-forwarded-", "x-b3-"} {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	return slices.Contains([]string{
		"origin", "referer", "cookie", "user-agent", "from", "date", "via", "forwarded", "x-request-id", "x-correlation-id", "x-trace-id", "request-id",
		"traceparent", "tracestate", "baggage", "idempotency-key", "last-event-id",
	}, name)
}
