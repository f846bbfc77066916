// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"encoding/hex"
	"strings"
)

// maxState is the longest tracestate that goes on; the standard asks for 512 at least.
const maxState = 512

// String returns the id in hexadecimal.
func (t TraceID) String() string { return hex.EncodeToString(t[:]) }

// parse reads a header traceparent of W3C's Trace Context: version, trace, span and flags, as
// "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01". Later versions may have more behind that.
func parse(h string) (t TraceID, s SpanID, sampled, ok bool) {
	const length = 2 + 1 + 32 + 1 + 16 + 1 + 2
	if len(h) < length || h[2] != '-' || h[35] != '-' || h[52] != '-' {
		return t, s, false, false
	}
	var version, flags [1]byte
	if !lowerHex(version[:], h[:2]) || !lowerHex(t[:], h[3:35]) || !lowerHex(s[:], h[36:52]) || !lowerHex(flags[:], h[53:55]) {
		return t, s, false, false
	}
	switch {
	case version[0] == 0xff, version[0] == 0 && len(h) != length, len(h) > length && h[length] != '-':
		return t, s, false, false
	case t == TraceID{}, s == SpanID{}:
		return t, s, false, false
	}
	return t, s, flags[0]&1 != 0, true
}

// lowerHex decodes lower-case hexadecimal, which is all that the standard allows.
func lowerHex(to []byte, text string) bool {
	for i := range text {
		if c := text[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	_, err := hex.Decode(to, []byte(text))
	return err == nil
}

func valid(s string) string { return strings.ToValidUTF8(s, "�") }
