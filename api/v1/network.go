// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package v1

import "time"

// NetworkPolicy is what a sandbox may reach. In a request, a mode alone may stand for it.
// Private, link-local and metadata addresses, the host and other sandboxes are out of reach in
// every mode, unless the server's operator named them.
type NetworkPolicy struct {
	Mode         string   `json:"mode" jsonschema:"off, restricted or open"`
	AllowDomains []string `json:"allow_domains,omitzero" jsonschema:"names that may be reached; *.example.org is all names below example.org; at most 256"`
	AllowCIDRs   []string `json:"allow_cidrs,omitzero" jsonschema:"addresses and ranges that may be reached without a name; at most 64"`
	AllowPorts   []string `json:"allow_ports,omitzero" jsonschema:"ports and ranges such as 8000-8100 that both are bound to; none: all ports; at most 32"`
	DenyDomains  []string `json:"deny_domains,omitzero" jsonschema:"in mode open, names that are not reached, as in allow_domains; what allow_domains has is reached all the same; at most 256"`
	DenyCIDRs    []string `json:"deny_cidrs,omitzero" jsonschema:"in mode open, addresses and ranges that are not reached, but for names in allow_domains; at most 64"`
	// Headers are shown to who may see the sandbox.
	Headers      map[string]map[string]string `json:"headers,omitzero" jsonschema:"headers, which are no secrets, that the server sets in requests by HTTP and HTTPS: by host (a name, or *.example.org for all below it), then by name, as {\"api.example.org\": {\"x-org\": \"acme\"}}; they replace what a program writes there; at most 32 hosts, of each 16, of 1024 bytes"`
	Learn        bool                         `json:"learn,omitempty" jsonschema:"let through what the lists would refuse, and note it; the log then proposes a policy"`
	AllowPresets []string                     `json:"allow_presets,omitzero" jsonschema:"presets such as python; what they stand for joins allow_domains when the policy is set; at most 16; see GET /v1/network/presets"`
	// PresetDomains is of answers. An answer that is sent back as a request means what it meant.
	PresetDomains []PresetDomain `json:"preset_domains,omitzero" jsonschema:"answers only: which of allow_domains are there for a preset alone, and who says so"`
}

// PresetDomain is a name that a preset stands for.
type PresetDomain struct {
	Preset string `json:"preset"`
	Domain string `json:"domain"`
	Source string `json:"source" jsonschema:"image: a package tool's settings in the sandbox's image, whose addresses have to be of the public internet; host: those of the server's host; operator: the server's configuration; published: the owner of the service"`
}

// PresetList is what the server's presets stand for in a sandbox of an image.
type PresetList struct {
	Items []Preset `json:"items"`
	Built bool     `json:"image_built" jsonschema:"false: the image is not built yet, and its own settings are missing here"`
}

// Preset is a name for a list of hosts.
type Preset struct {
	Name    string         `json:"name"`
	About   string         `json:"about" jsonschema:"where the list is from"`
	Domains []PresetDomain `json:"domains" jsonschema:"empty: nothing says, and the preset is refused"`
}

// NetworkLog is what a sandbox tried to reach since it was started, or since the
// server was.
type NetworkLog struct {
	Policy   NetworkPolicy  `json:"policy"`
	Since    *time.Time     `json:"since" jsonschema:"null: it has had no network since"`
	Items    []NetworkEntry `json:"items" jsonschema:"the latest first"`
	Dropped  int64          `json:"dropped" jsonschema:"how many more there were than are kept"`
	Proposal NetworkPolicy  `json:"proposal" jsonschema:"a policy under which all of it that a policy can allow would have been allowed"`
}

// NetworkEntry is one thing that a sandbox tried to reach.
type NetworkEntry struct {
	Protocol string    `json:"protocol" jsonschema:"dns, tcp or udp"`
	Name     string    `json:"name,omitempty" jsonschema:"the name that was asked for, or that the connection named"`
	Address  string    `json:"address,omitempty" jsonschema:"the last address"`
	Port     int       `json:"port,omitempty"`
	Allowed  bool      `json:"allowed"`
	Learned  bool      `json:"learned,omitempty" jsonschema:"allowed only since the policy learns"`
	Reason   string    `json:"reason,omitempty" jsonschema:"why it was refused: domain, address, port, private, blocked, denied, host, name, names, protocol or limit"`
	Detail   string    `json:"detail,omitempty" jsonschema:"the same for people, with what to do about it"`
	Count    int64     `json:"count"`
	FirstAt  time.Time `json:"first_at"`
	LastAt   time.Time `json:"last_at"`
}
