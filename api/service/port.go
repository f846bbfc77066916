// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/engine"
	"sandpit.dev/engine/ports"
	"sandpit.dev/network/ask"
	"sandpit.dev/network/permit"
	"sandpit.dev/sandbox"
)

// Ports reaches what programs inside serve.
type Ports interface {
	Ports(ctx context.Context, c access.Caller, ref string) (ports []sandbox.Port, truncated bool, err error)
	DialPort(ctx context.Context, c access.Caller, ref string, port int) (*ports.Conn, error)
	// SetPreviews changes who may see a sandbox's ports, and CheckPreviews says whether that may be asked for.
	SetPreviews(ctx context.Context, c access.Caller, ref string, ch ports.PreviewsChange) (ports.Previews, error)
	CheckPreviews(ch ports.PreviewsChange) error
	PreviewsOf(ctx context.Context, c access.Caller, ref string) (ports.Previews, error)
	// CreateLink makes a link that can be listed and revoked; without a time it is good as long as the sandbox is.
	CreateLink(ctx context.Context, c access.Caller, ref string, port int, expires time.Duration) (*ports.Link, error)
	Links(ctx context.Context, c access.Caller, ref string) ([]*ports.Link, error)
	RevokeLink(ctx context.Context, c access.Caller, ref, id string) error
	CreatePreview(ctx context.Context, c access.Caller, ref string, port int, expires time.Duration) (ports.Preview, error)
}

// Networks says what sandboxes may reach, and what they tried to.
type Networks interface {
	NetworkLog(ctx context.Context, c access.Caller, ref string) (engine.NetworkLog, error)
	// Networks returns the modes that sandboxes may have here, the narrowest first.
	Networks() []sandbox.NetworkMode
	// DefaultNetwork returns the policy of a sandbox for which a caller asks for none.
	DefaultNetwork() sandbox.NetworkPolicy
	// PresetNames returns the names of lists of hosts that a policy may name.
	PresetNames() []string
	// Presets returns what they stand for in a sandbox of an image, and reports whether that is built.
	Presets(ctx context.Context, c access.Caller, image string) (all []permit.Preset, built bool, err error)
	// InForce returns what holds of a sandbox's policy: the server may allow less by now than
	// when the sandbox was made.
	InForce(sandbox.NetworkPolicy) sandbox.NetworkPolicy
}

// Requests is what callers ask sandboxes' networks to reach, and what a person answers; *ask.Desk is it.
type Requests interface {
	// Asks reports whether anything may be asked for on this server.
	Asks() bool
	RequestNetwork(ctx context.Context, c access.Caller, ref string, presets, domains []string, why string) (ask.Request, ask.State, error)
	NetworkRequests(ctx context.Context, c access.Caller, ref string) ([]ask.Request, error)
	GrantNetwork(ctx context.Context, c access.Caller, id string) (ask.Request, error)
	DenyNetwork(ctx context.Context, c access.Caller, id string) (ask.Request, error)
	// ShowNetwork and AnswerNetwork are for a client that asks its own person, where the operator has it so.
	ShowNetwork(c access.Caller, r ask.Request) (form string)
	AnswerNetwork(ctx context.Context, c access.Caller, form, ref string, presets, domains []string, ch ask.Choice) (ask.Request, ask.State, error)
}
