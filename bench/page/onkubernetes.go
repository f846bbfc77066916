// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"

	"sandpit.dev/bench"
)

// onCluster is what sandboxes that are pods of a cluster cost.
func onCluster(r *bench.Report) string {
	k := r.OnKubernetes
	if k == nil {
		return ""
	}
	t := newTiming("a pod and its claim", false)
	t.add("stop", k.Stop)
	t.add("start on the claim, and a command", k.Again)
	t.add("delete", k.Delete)
	t.add(fmt.Sprintf("the last of %s creates at once, with a command", count(k.Crowds)), k.Crowd)
	return "On a cluster of one node, which has the image. In turn: a pod of the API's until a watch says that it runs, the same with a claim, a pod and a command by the API's exec, a create and its command by one request " +
		"of sandpit's, and the same where the server has a pool. A sandbox has a claim for its disk. A kubelet looks each 300 ms whether a pod's volumes are there, so that one with any waits for that.\n\n" +
		compared("on a cluster", asItIs, k.Start, k.Exec) + t.String()
}
