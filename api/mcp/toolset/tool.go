// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package toolset

import (
	"context"
	"log/slog"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sandpit.dev/api/filelink"
	"sandpit.dev/api/mcp/transport"
	"sandpit.dev/api/service"
)

// Tool is one tool: what a model reads of it, and what it does.
type Tool struct {
	Name, Title, About string
	Params             []Param
	Example            string // arguments that are right, for messages
	ReadOnly           bool   // else it needs a token that may write
	Destructive        bool
	Idempotent         bool
	OpenWorld          bool   // it may reach beyond the sandbox
	Group              string // empty: of a profile that has none
	Words              *Words // of its profile, for errors; nil: those of the default one
	Run                func(context.Context, *Call) (*Answer, error)
	// Past finds what an earlier server's call of it began, by the id of the task that the
	// call became; nil, and no error: it began none of that id, or another caller did. Past
	// itself is nil where nothing is on record.
	Past func(ctx context.Context, c *Call, id string) (*transport.PastTask, error)
}

// Via is what the record of what was done through this coat says.
const Via = "mcp"

// Call is one call of a tool. It belongs to the goroutine that serves it.
type Call struct {
	*transport.Call
	service.Services
	Tool     *Tool
	Log      *slog.Logger
	Groups   []string // of tools, that are switched on
	Args     *Args
	Progress *Progress
	Ref      string        // the sandbox that it works in, once known
	AskWait  time.Duration // how long the call may wait for a person
	Failed   error         // what Failure told of; nil: it was not called

	Links    *filelink.Links // to files; nil: there are none
	Previews Previews        // nil: there are none to ports
}

// OwnTools reports whether the caller has the tools of the default profile.
func (c *Call) OwnTools() bool { return c.Tool.Words == nil && c.Tool.Group != "" }

// Profile is one face of the server: a name, what a model reads first, and the
// tools. All have the same engine below, so that a sandbox made through one can be
// used through any other.
type Profile struct {
	Name         string
	Instructions func(groups []string) string
	Tools        func(groups []string) []Tool // groups are those that are switched on

	Options func(*mcp.ServerOptions) // changes those of its servers; nil: nothing
	Serve   func(*mcp.Server)        // adds to each what are no tools; nil: nothing
	Close   func()                   // ends what calls left going; nil: nothing
}
