// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcpsetup

import (
	"fmt"
	"strings"
)

// DefaultName is what an entry is called by default.
const DefaultName = "sandpit"

// TokenVar is the variable that holds the token, where a file only refers to it.
const TokenVar = "SANDPIT_TOKEN"

// Server is the server to add to a client's configuration.
type Server struct {
	Name    string // of the entry; see CheckName
	URL     string // where it speaks MCP
	Remote  bool   // the bridge does not find it, or its token, by itself
	Bridge  string // what the bridge is told of it, of a kept server or one on the same machine; empty: nothing
	Token   string // to be written down; empty: it is referred to, where that can be
	Profile string // the set of tools that URL leads to; empty: the default
	Program string // the bridge: this program
	Stdio   bool   // the client is to start the bridge, also where it could open URL
}

// args are those of the bridge.
func (s Server) args() []string {
	if s.Remote {
		return []string{"connect", s.URL}
	}
	args := []string{"mcp"}
	if s.Bridge != "" {
		args = append(args, "--server", s.Bridge)
	}
	if s.Profile != "" {
		args = append(args, "--profile", s.Profile)
	}
	return args
}

// maxName bounds the name of an entry.
const maxName = 64

// CheckName refuses a name that some client would not take, or that would have to be
// quoted somewhere.
func CheckName(name string) error {
	if name == "" || len(name) > maxName || strings.Trim(name, nameLetters) != "" {
		return fmt.Errorf("%.80q is not a valid entry name: 1 to %d letters, digits, dashes and underscores", name, maxName)
	}
	return nil
}

const nameLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"
