// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sandpit

import (
	"log/slog"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sandpit.dev/api/filelink"
	"sandpit.dev/api/mcp/toolset"
	"sandpit.dev/fault"
)

// Name is the profile of whoever asks for none.
const Name = "sandpit"

// profile is what its tools, resources and prompts are made of.
type profile struct {
	engine    toolset.Engine
	files     *filelink.Links // nil: there are no links to files
	artifacts Artifacts
	log       *slog.Logger
	skill     *skill
	cells     *cells
}

// New returns the profile. artifacts may be nil, then they are what runs left, and what
// is under /artifacts of sandboxes that run; files may be nil, too.
func New(e toolset.Engine, files *filelink.Links, artifacts Artifacts, log *slog.Logger) (toolset.Profile, error) {
	sp := &profile{engine: e, files: files, artifacts: artifacts, log: log, cells: new(cells)}
	if artifacts == nil {
		sp.artifacts = recentArtifacts{e}
	}
	var err error
	if sp.skill, err = readSkill(); err != nil {
		return toolset.Profile{}, fault.Wrap(fault.Internal, err, "the skill that is built in cannot be read")
	}
	return toolset.Profile{
		Name: Name, Instructions: instructions, Options: sp.options, Serve: sp.serve, Close: sp.cells.stop,
		Tools: func(groups []string) []toolset.Tool { return tools(groups, sp.cells) },
	}, nil
}

// options tells clients that there is more than tools.
func (sp *profile) options(o *mcp.ServerOptions) {
	o.Capabilities.Resources, o.Capabilities.Prompts = &mcp.ResourceCapabilities{}, &mcp.PromptCapabilities{}
	o.Capabilities.Extensions[extensionSkills] = map[string]any{}
	o.CompletionHandler = sp.complete
}

// serve adds to a server what are no tools.
func (sp *profile) serve(s *mcp.Server) {
	sp.serveResources(s)
	servePrompts(s)
	serveSkill(s, sp.skill)
}
