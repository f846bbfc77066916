// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sandpit.dev/access"
	"sandpit.dev/api/mcp/toolset"
	"sandpit.dev/api/mcp/transport"
	"sandpit.dev/fault"
)

// toolsOf are those of a group.
func toolsOf(group string, cs *cells) []toolset.Tool {
	switch group {
	case toolset.GroupCore:
		return []toolset.Tool{createSandbox(), listSandboxes(), deleteSandbox(), runCommand(), readFile(), writeFile(), editFile()}
	case toolset.GroupCode:
		return []toolset.Tool{runCode(cs)}
	case toolset.GroupProcess:
		return []toolset.Tool{readProcess(cs), writeProcess(), stopProcess(cs)}
	case toolset.GroupFiles:
		return []toolset.Tool{listFiles(), searchFiles(), getFileURL()}
	case toolset.GroupPorts:
		return []toolset.Tool{exposePort()}
	case toolset.GroupRuns:
		return []toolset.Tool{runSandbox()}
	case toolset.GroupState:
		return []toolset.Tool{
			pauseSandbox(), resumeSandbox(), restartSandbox(),
			snapshotSandbox(), listSnapshots(), deleteSnapshot(),
			rollbackSandbox(), forkSandbox(), diffSandbox(), getSandboxLimits(),
		}
	case toolset.GroupManage:
		return []toolset.Tool{
			updateSandbox(), startSandbox(), stopSandbox(), runInShell(), createContext(), endContext(),
			openTerminal(), resizeTerminal(), buildImage(),
		}
	case toolset.GroupInspect:
		return []toolset.Tool{
			getSandbox(), listActivity(), listProcesses(), listRuns(), listContexts(), listPorts(),
			getNetworkLog(), listSecrets(), listImages(), watchFiles(),
		}
	case toolset.GroupVolumes:
		return []toolset.Tool{createVolume(), listVolumes(), deleteVolume()}
	}
	return nil
}

// narrowTools hides from a caller the groups that its token's scopes leave out.
// The list depends on the token alone, so that it is the same each time.
func narrowTools(h *Handler, groups map[string]*toolset.Tool) mcp.Middleware {
	return func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			caller := transport.CallOf(req).Caller
			if r, ok := req.(*mcp.CallToolRequest); ok && r.Params != nil {
				if t := groups[r.Params.Name]; t != nil && !caller.SeesTools(t.Group) {
					c := h.call(transport.CallOf(r), t)
					return c.Failure(ctx, fault.New(fault.Denied, "the tool %s needs the scope %s, and the scopes of the token %q narrow it to other tools", t.Name, access.ToolScope(t.Group), caller.Actor).
						WithRemedy("work with the tools that are listed, or use a token that has the scope")), nil
				}
			}
			res, err := next(ctx, method, req)
			if list, ok := res.(*mcp.ListToolsResult); ok && err == nil {
				list.Tools = slices.DeleteFunc(list.Tools, func(t *mcp.Tool) bool {
					g := groups[t.Name]
					return g != nil && !caller.SeesTools(g.Group)
				})
			}
			return res, err
		}
	}
}
