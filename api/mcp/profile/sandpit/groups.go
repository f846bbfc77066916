// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sandpit

import (
	"sandpit.dev/api/mcp/toolset"
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

// tools lists those of the groups that are switched on; a client gets them sorted
// by name.
func tools(groups []string, cs *cells) []toolset.Tool {
	var all []toolset.Tool
	for _, g := range groups {
		for _, t := range toolsOf(g, cs) {
			t.Group = g
			all = append(all, t)
		}
	}
	return all
}
