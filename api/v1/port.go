// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package v1

import "time"

// Port is a listening socket in a sandbox.
type Port struct {
	Port     int    `json:"port"`
	Protocol string `json:"protocol" jsonschema:"tcp or udp"`
	Address  string `json:"address" jsonschema:"that it is bound to; 0.0.0.0 or :: is all"`
	PID      int    `json:"pid,omitempty" jsonschema:"the process inside; missing where it cannot be told"`
	Command  string `json:"command,omitempty" jsonschema:"what that process calls itself"`
	User     string `json:"user" jsonschema:"who opened it"`
	URL      string `json:"url,omitempty" jsonschema:"of a preview; it is private"`
}

// PortList is what listens in a sandbox, by port.
type PortList struct {
	Items     []Port `json:"items"`
	Truncated bool   `json:"truncated,omitempty" jsonschema:"there is more"`
}

// CreatePreview asks for a link to a port.
type CreatePreview struct {
	Port           int    `json:"port" jsonschema:"1 to 65535; nothing needs to listen there yet"`
	ExpiresSeconds *int64 `json:"expires_seconds,omitempty" jsonschema:"how long it is good, 1 to 2592000; default 3600"`
}

// Preview is a link to a port: anyone who has it sees what the program there serves, until it
// expires or the sandbox is deleted.
type Preview struct {
	ID        string    `json:"id" jsonschema:"names the link in the sandbox's activity"`
	SandboxID string    `json:"sandbox_id"`
	Port      int       `json:"port"`
	URL       string    `json:"url" jsonschema:"to open in a browser"`
	PathURL   string    `json:"path_url" jsonschema:"the same, for clients that cannot reach the host of url"`
	BaseURL   string    `json:"base_url" jsonschema:"url without the token"`
	Token     string    `json:"token" jsonschema:"for programs, as the header X-Sandpit-Token"`
	ExpiresAt time.Time `json:"expires_at"`
}

// UpdatePreviews says who may see what programs in a sandbox serve, and what they see. What is left out stays.
type UpdatePreviews struct {
	Access      *string `json:"access,omitempty" jsonschema:"private: whoever has a token or a link; public: everyone, by the preview's own host name, where the server allows it"`
	PublicPorts []int   `json:"public_ports,omitzero" jsonschema:"ports that everyone may see while access is private; at most 64"`
	Host        *string `json:"host,omitempty" jsonschema:"the Host that programs see: own (the one that was asked, the default), localhost (with the port), or the lower-case name of a host"`
	Token       *bool   `json:"token,omitempty" jsonschema:"whether there is a token that opens every port of the sandbox; true leaves one that there is, and one made after false is another"`
}

// Previews says who may see what programs in a sandbox serve, and what they see.
type Previews struct {
	Access        string  `json:"access" jsonschema:"private or public"`
	PublicPorts   []int   `json:"public_ports" jsonschema:"that everyone may see while access is private"`
	Host          string  `json:"host" jsonschema:"the Host that programs see: own, localhost, or a name"`
	Token         *string `json:"token" jsonschema:"opens every port of the sandbox until it is taken back; null: there is none, or the caller may not use it"`
	PublicAllowed bool    `json:"public_allowed" jsonschema:"whether the server allows public previews now; while it does not, all are private"`
}

// CreatePreviewLink asks for a link to a port that can be listed and revoked.
type CreatePreviewLink struct {
	Port           int    `json:"port" jsonschema:"1 to 65535; nothing needs to listen there yet"`
	ExpiresSeconds *int64 `json:"expires_seconds,omitempty" jsonschema:"how long it is good, 1 to 31622400; the default is until it is revoked or the sandbox is deleted"`
}

// PreviewLink is a link to a port that is on record: anyone who has it sees what the program there serves.
type PreviewLink struct {
	ID        string     `json:"id" jsonschema:"names the link in the sandbox's activity, and revokes it"`
	SandboxID string     `json:"sandbox_id"`
	Port      int        `json:"port"`
	URL       string     `json:"url,omitempty" jsonschema:"to open; missing where the client that asks reaches no host of previews"`
	Token     string     `json:"token" jsonschema:"40 lower-case letters and digits: the host is the port, a dash and this, below the domain of previews"`
	CreatedAt time.Time  `json:"created_at"`
	CreatedBy string     `json:"created_by" jsonschema:"as events call them"`
	ExpiresAt *time.Time `json:"expires_at" jsonschema:"null: until it is revoked or the sandbox is deleted"`
}

// PreviewLinkList is the links of a sandbox, oldest first; those that have expired are left out.
type PreviewLinkList struct {
	Items []PreviewLink `json:"items"`
}

// PortControl is a text message on the WebSocket of a connection to a port; binary messages are
// its bytes, both ways. Either side sends End when it sends nothing more; the server sends Error
// once, last.
type PortControl struct {
	End   bool     `json:"end,omitempty"`
	Error *Problem `json:"error,omitempty"`
}
