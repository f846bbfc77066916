// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package release reports what versions of Daytona's clients expect, where older ones expect other answers.
package release

import (
	"net/http"
	"strconv"
	"strings"
)

// Of returns the version that the client of a request says, "" where it says none.
func Of(r *http.Request) string { return r.Header.Get("X-Daytona-SDK-Version") }

// Before reports whether a version is older than one of two numbers. What cannot be read is not.
func Before(version string, major, minor int) bool {
	first, rest, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	second, _, _ := strings.Cut(rest, ".")
	a, aerr := strconv.Atoi(first)
	b, berr := strconv.Atoi(second)
	if aerr != nil || berr != nil {
		return false
	}
	return a < major || a == major && b < minor
}

// MarksOutput reports whether a client reads the output of a session's command as one text, with a mark before each piece
// of a stream: from 0.27 on, until 0.167.
func MarksOutput(version string) bool {
	return Before(version, 0, 167) && !Before(version, 0, 27) && !strings.Contains(version, "dev")
}

// ToolboxByPreview reports whether a client opens its WebSockets at the address of the toolbox's port: before 0.113.
func ToolboxByPreview(version string) bool { return Before(version, 0, 113) }

// AsksForDeleted reports whether a client asks for a sandbox once more when it has deleted it: before 0.148 at the latest.
func AsksForDeleted(version string) bool { return Before(version, 0, 148) }
