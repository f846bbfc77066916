// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcpsetup

import (
	"encoding/base64"
	"net/url"
	"strings"
)

// Link is a URL that, opened on the machine that the client runs on, has it offer to add
// the server; "" where the client has none. It never has the token in it: links are
// kept in histories.
func (c Client) Link(s Server) string {
	s.Token, s.Stdio = "", false
	if c.remote == nil {
		return ""
	}
	switch c.ID {
	case "cursor":
		config := base64.StdEncoding.EncodeToString(compactJSON(c.entry(s)))
		return "cursor://anysphere.cursor-deeplink/mcp/install?name=" + url.QueryEscape(s.Name) + "&config=" + url.QueryEscape(config)
	case "vscode":
		config := append(object{{"name", s.Name}}, c.entry(s)...).with(inputsKey, []any{c.input(s)})
		return "vscode:mcp/install?" + strings.ReplaceAll(url.QueryEscape(string(compactJSON(config))), "+", "%20")
	}
	return ""
}

// Command is a line for a shell that adds the server by the client's own program; "" where
// the client has none, or the token would stand in the line, where others could read it.
func (c Client) Command(s Server) string {
	if c.starts(s) || s.Token != "" {
		return ""
	}
	switch c.ID {
	case "claude-code":
		return "claude mcp add --scope user --transport http " + s.Name + " " + Quote(s.URL) + " --header " + Quote("Authorization: Bearer "+c.refer)
	case "codex":
		return "codex mcp add " + s.Name + " --url " + Quote(s.URL) + " --bearer-token-env-var " + TokenVar
	case "gemini":
		return "gemini mcp add --scope user --transport http --header " + Quote("Authorization: Bearer "+c.refer) + " " + s.Name + " " + Quote(s.URL)
	}
	return ""
}

// Quote returns a word as a shell reads it, in quotes only where it has to be.
func Quote(word string) string {
	if strings.Trim(word, nameLetters+"./:=@%+") == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
