// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package v1

import "time"

// ClientSetup is how a program that speaks MCP is told of the server.
type ClientSetup struct {
	ID       string `json:"id" jsonschema:"claude-code, cursor and the like"`
	Title    string `json:"title" jsonschema:"for people"`
	Note     string `json:"note" jsonschema:"what else there is to know; empty: nothing"`
	Language string `json:"language" jsonschema:"of its file: JSON or TOML"`
	File     string `json:"file" jsonschema:"where it looks on the machine that the server runs on, or one like it, with ~ for the home; empty: it is not one program"`
	Snippet  string `json:"snippet" jsonschema:"what its file is to have"`
	Command  string `json:"command" jsonschema:"a line for a shell that adds the server; empty: there is none"`
	Link     string `json:"link" jsonschema:"that adds the server, opened on the client's machine; empty: there is none"`
	Token    string `json:"token" jsonschema:"how it comes by its token: variable (its environment has it), asked (it asks its user), written (its file has it) or found (it finds that of a server on its own machine)"`
}

// ClientSetupList is all clients that are known.
type ClientSetupList struct {
	URL           string        `json:"url" jsonschema:"where the server speaks MCP, as the caller reached it"`
	TokenVariable string        `json:"token_variable" jsonschema:"of the environment, that files name in place of a token"`
	Placeholder   string        `json:"placeholder" jsonschema:"what stands in a snippet where a token is to be written"`
	Profiles      []string      `json:"profiles" jsonschema:"sets of tools that there are"`
	Items         []ClientSetup `json:"items"`
}

// SeenClient is a program that called by MCP, by one token. What it says of itself is its own word.
type SeenClient struct {
	Project     string     `json:"project"`
	Actor       string     `json:"actor" jsonschema:"the token's name"`
	TokenID     *string    `json:"token_id" jsonschema:"null: the server's own admin token, or one of a single sandbox"`
	SandboxID   *string    `json:"sandbox_id" jsonschema:"that the token is good for alone; null: it is good for more"`
	Name        string     `json:"name" jsonschema:"as it calls itself; empty: it did not say"`
	Version     string     `json:"version" jsonschema:"likewise"`
	Title       string     `json:"title" jsonschema:"likewise, for people"`
	Protocol    string     `json:"protocol" jsonschema:"the version of MCP that it asked for"`
	Profile     string     `json:"profile" jsonschema:"the set of tools"`
	FirstSeenAt time.Time  `json:"first_seen_at" jsonschema:"since the server began"`
	LastSeenAt  time.Time  `json:"last_seen_at"`
	LastMethod  string     `json:"last_method" jsonschema:"initialize, tools/list, tools/call and the like"`
	LastTool    string     `json:"last_tool" jsonschema:"that it called, where the last message was a call; else empty"`
	Messages    int64      `json:"messages"`
	Calls       int64      `json:"calls" jsonschema:"of tools"`
	Listed      int        `json:"listed" jsonschema:"how many tools it was told of last"`
	ListedAt    *time.Time `json:"listed_at" jsonschema:"null: it did not ask"`
}

// SeenClientList is all clients that the caller may see.
type SeenClientList struct {
	Items []SeenClient `json:"items"`
}
