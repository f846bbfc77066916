// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bytes"
	"unicode/utf8"

	"sandpit.dev/sandbox"
)

// AfterCut returns what can be shown of a terminal's output that was cut off somewhere
// before data: from the next line on; else from the next escape sequence; else from
// the next character. A sequence that began before the cut so does no harm.
func AfterCut(data []byte) []byte {
	if i := bytes.IndexByte(data, '\n'); i >= 0 {
		return data[i+1:]
	}
	if i := bytes.IndexByte(data, '\x1b'); i >= 0 {
		return data[i:]
	}
	for len(data) > 0 && !utf8.RuneStart(data[0]) {
		data = data[1:]
	}
	return data
}

// WhyLost returns why output is in no frame, for people.
func WhyLost(c sandbox.Cut) string {
	switch c {
	case sandbox.CutLimit:
		return "the process wrote more than its log keeps of a stream"
	case sandbox.CutLogs:
		return "the logs of the sandbox's processes had no more room together"
	case sandbox.CutDisk:
		return "the disk had no room for it"
	case sandbox.CutAgent:
		return "the sandbox went down under the process: what it wrote last may be missing"
	}
	return "the process wrote more than its log keeps of a stream, or than its disk had room for"
}
