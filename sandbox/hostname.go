// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import "strings"

// maxHostname is the longest host name that the kernel takes and that is a label of DNS, too.
const maxHostname = 63

// Hostname is the sandbox's host name, as its programs see it: its key where that is a valid one,
// else its id.
func (s *Sandbox) Hostname() string {
	if validHostname(s.Key) {
		return s.Key
	}
	return string(s.ID)
}

// validHostname reports whether name is a host name by RFC 1123: labels of letters, digits and
// hyphens, with dots between them, that cannot be read as an address.
func validHostname(name string) bool {
	if len(name) > maxHostname {
		return false
	}
	letters := false // of the last label
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
		letters = false
		for i := range len(label) {
			switch c := label[i]; {
			case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c == '-':
				letters = true
			case c < '0' || c > '9':
				return false
			}
		}
	}
	return letters
}
