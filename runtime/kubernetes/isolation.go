// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import "sandpit.dev/fault"

// isolates says why sandboxes are not kept apart from their nodes as hostile code should be, and what they have. network is what is known of the
// cluster's network.
func (d *Driver) isolates(network string) error {
	kernel, root := "pods share their node's kernel", "root in a pod is root on its node, with few capabilities and the runtime's filter of system calls"
	remedy := "use a runtime class that isolates, or the native runtime for code that is hostile"
	if d.o.RuntimeClass != "" {
		kernel = "what the runtime class " + d.o.RuntimeClass + " keeps apart is not known to the server"
		remedy = "see what the maker of the runtime class says, or use the native runtime for code that is hostile"
	}
	if d.o.Users {
		root = "root in a pod is nobody on its node"
	} else {
		remedy += "; set kubernetes.user_namespaces where the nodes can do that"
	}
	return fault.New(fault.Unsupported, "%s; %s; %s", kernel, root, network).WithRemedy("%s", remedy)
}
