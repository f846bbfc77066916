// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"sandpit.dev/fault"
	"sandpit.dev/internal/cluster"
	"sandpit.dev/internal/cluster/clustertest"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

// volume makes one, which is removed with the test.
func (s *server) volume(t *testing.T, limit int64) sandbox.ID {
	t.Helper()
	id := sandbox.NewID()
	if err := s.CreateVolume(t.Context(), id, limit); err != nil {
		t.Fatalf("CreateVolume: %v", err)
	}
	t.Cleanup(func() {
		if err := s.RemoveVolume(context.Background(), id); err != nil && !fault.Is(err, fault.Conflict) {
			t.Errorf("RemoveVolume: %v", err)
		}
	})
	return id
}

// claim is what the cluster has of a volume.
func (s *server) claim(id sandbox.ID) (c corev1.PersistentVolumeClaim) {
	s.t.Helper()
	text := clustertest.Kubectl(s.t, s.c, "-n", s.o.Space, "get", "pvc", "volume-"+string(id), "-o", "json")
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		s.t.Fatal(err)
	}
	return c
}

// mounting is a spec of a sandbox with a volume at each path.
func (s *server) mounting(at map[string]sandbox.ID) runtime.Spec {
	spec := s.spec()
	for path, id := range at {
		spec.Mounts = append(spec.Mounts, sandbox.Mount{Volume: id, Path: path})
	}
	return spec
}

func (s *server) wantCode(what string, err error, code fault.Code, texts ...string) {
	s.t.Helper()
	if !fault.Is(err, code) {
		s.t.Errorf("%s: got %v (code %q), want code %q", what, err, fault.Of(err), code)
		return
	}
	for _, text := range texts {
		if !strings.Contains(err.Error()+fault.As(err).Remedy, text) {
			s.t.Errorf("%s: it says %q and %q, want %q in it", what, err, fault.As(err).Remedy, text)
		}
	}
}

func volumesAreClaims(t *testing.T, c *cluster.Cluster, image runtime.Image) {
	o := options(t, c)
	o.VolumeAccess, o.Users = string(corev1.ReadWriteMany), true
	clustertest.Kubectl(t, c, "label", "namespace", o.Space, "pod-security.kubernetes.io/enforce=baseline")
	s := serve(t, c, image, o)
	one, two := s.volume(t, 300<<20), s.volume(t, 0)
	for id, size := range map[sandbox.ID]string{one: "300Mi", two: "10Gi"} {
		got := s.claim(id)
		if storage := got.Spec.Resources.Requests[corev1.ResourceStorage]; storage.String() != size || !slices.Equal(got.Spec.AccessModes, []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}) {
			t.Errorf("the claim asks for %s and %v, want %s", &storage, got.Spec.AccessModes, size)
		}
	}
	// In the place of directories of the disk, in them, and beside them.
	spec := s.mounting(map[string]sandbox.ID{"/workspace": one, "/home/sandbox": two, "/artifacts/deep/down": s.volume(t, 0), "/mnt/v": s.volume(t, 0)})
	i := s.create(spec)
	const look = "cd /; for d in workspace home/sandbox artifacts/deep/down mnt/v; do stat -c '%U %a' $d; echo $d > $d/file; done; stat -c %U artifacts/deep; echo own > artifacts/own"
	if got := run(t, i, "", look); got != strings.Repeat("sandbox 755\n", 4)+"sandbox" {
		t.Errorf("got %q", got)
	}
	if p, _ := s.pod(spec.ID); p.Spec.Affinity != nil {
		t.Errorf("it has to be beside others: %+v", p.Spec.Affinity)
	}
	// Neither a snapshot nor a rollback is of volumes, and the rollback is of what they hide.
	kept := s.keep(i)
	if err := i.Stop(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	spec.Mounts = spec.Mounts[:0:0]
	if err := i.Start(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	if got := run(t, i, "", "cd /; ls -A workspace artifacts/deep/down; cat artifacts/own; echo hidden > workspace/hidden; rm artifacts/own"); got != "artifacts/deep/down:\n\nworkspace:\nown" {
		t.Errorf("without volumes it has %q", got)
	}
	if err := i.Stop(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if err := s.Rollback(t.Context(), spec.ID, kept, spec.Limits); err != nil {
		t.Fatal(err)
	}
	spec.Mounts = []sandbox.Mount{{Volume: one, Path: "/workspace"}, {Volume: two, Path: "/artifacts/deep", ReadOnly: true}}
	if err := i.Start(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	if got := run(t, i, "", "cd /; cat workspace/file artifacts/own artifacts/deep/file; touch artifacts/deep/x 2>&1 | grep -o Read-only"); got != "workspace\nown\nhome/sandbox\nRead-only" {
		t.Errorf("rolled back it has %q", got)
	}
	if err := i.Stop(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	spec.Mounts = nil
	if err := i.Start(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	if got := run(t, i, "", "cd /; ls -A workspace artifacts/deep/down; cat artifacts/own"); got != "artifacts/deep/down:\n\nworkspace:\nown" {
		t.Errorf("rolled back and without volumes it has %q", got)
	}
}

// Where a sandbox keeps its root, what is in the way of a volume may be root's own from one start to the next.
func volumesInKeptRoots(t *testing.T, c *cluster.Cluster, image runtime.Image) {
	s := serve(t, c, image, withUsers(t, c))
	spec := s.mounting(map[string]sandbox.ID{"/mnt/deep/v": s.volume(t, 0), "/workspace": s.volume(t, 0)})
	i := s.create(spec)
	run(t, i, "", "echo mine > /mnt/deep/v/file; echo work > /workspace/file")
	run(t, i, "root", "echo kept > /usr/kept; rm -rf /srv")
	again(t, i, spec)
	if got := run(t, i, "", "cat /usr/kept /mnt/deep/v/file /workspace/file; stat -c %U /mnt/deep/v"); got != "kept\nmine\nwork\nsandbox" {
		t.Errorf("got %q", got)
	}
	kept := s.keep(i)
	if err := i.Stop(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if err := s.Rollback(t.Context(), spec.ID, kept, spec.Limits); err != nil {
		t.Fatal(err)
	}
	mounts := spec.Mounts
	spec.Mounts = []sandbox.Mount{{Volume: mounts[0].Volume, Path: "/srv/v"}} // which was removed
	if err := i.Start(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	run(t, i, "root", "rm -r /mnt/deep; ln -s /etc /mnt/deep")
	if err := i.Stop(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	spec.Mounts = []sandbox.Mount{{Volume: mounts[0].Volume, Path: "/mnt/deep/v"}}
	s.wantCode("a link on the way", i.Start(t.Context(), spec), fault.Conflict, "/mnt/deep/v")
	spec.Mounts = nil
	if err := i.Start(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	if got := run(t, i, "", "readlink /mnt/deep; cat /usr/kept"); got != "/etc\nkept" {
		t.Errorf("got %q", got)
	}
	// The disk is filled by another pod where there are volumes, and the root is that of the image all the same.
	if err := i.Stop(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if err := s.Rollback(t.Context(), spec.ID, "", spec.Limits); err != nil {
		t.Fatal(err)
	}
	spec.Mounts = mounts
	if err := i.Start(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	if got := run(t, i, "", "ls /usr/kept 2>&1 | grep -c 'No such'; ls -d /srv; cat /mnt/deep/v/file"); got != "1\n/srv\nmine" {
		t.Errorf("after a rollback to a new disk: %q", got)
	}
}

func badVolumes(t *testing.T, c *cluster.Cluster, image runtime.Image) {
	o := options(t, c)
	o.VolumeClass = "missing"
	s := serve(t, c, image, o)
	s.SetClaimPatience(time.Second)
	id := s.volume(t, 0)
	if _, err := s.Create(t.Context(), s.mounting(map[string]sandbox.ID{"/mnt/v": id})); err == nil {
		t.Error("a volume that is never bound is mounted")
	} else {
		s.wantCode("one that is never bound", err, fault.Unavailable, "volume "+string(id), "unbound", "kubernetes.volume_class", "kubernetes.volume_access")
	}

	o.VolumeClass = ""
	clustertest.Kubectl(t, c, "-n", o.Space, "create", "quota", "small", "--hard=requests.storage=11Gi")
	s.o = o
	i := s.restart(t, s.create(s.spec()))
	s.wantCode("one that is larger than the quota", s.CreateVolume(t.Context(), sandbox.NewID(), 20<<30), fault.Exhausted, "exceeded quota: small")
	run(t, i, "", "true")
	clustertest.Kubectl(t, c, "-n", o.Space, "delete", "quota", "small")

	taken := sandbox.NewID()
	clustertest.Apply(t, c, `{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":"volume-`+string(taken)+`","namespace":"`+o.Space+`"},`+
		`"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Mi"}}}}`)
	s.wantCode("one whose claim is another's", s.CreateVolume(t.Context(), taken, 0), fault.Conflict, "volume-"+string(taken), "none of this server's")
	if _, err := s.Create(t.Context(), s.mounting(map[string]sandbox.ID{"/mnt/v": taken})); !fault.Is(err, fault.NotFound) {
		t.Errorf("another's claim is mounted: %v", err)
	}
	if err := s.RemoveVolume(t.Context(), taken); err != nil {
		t.Error(err)
	}
	if got := clustertest.Kubectl(t, c, "-n", o.Space, "get", "pvc", "volume-"+string(taken), "-o", "name"); got == "" {
		t.Error("another's claim was deleted")
	}

	leaving := s.volume(t, 0)
	user := s.create(s.mounting(map[string]sandbox.ID{"/mnt/v": leaving}))
	clustertest.Kubectl(t, c, "-n", o.Space, "delete", "pvc", "volume-"+string(leaving), "--wait=false")
	_, err := s.Create(t.Context(), s.mounting(map[string]sandbox.ID{"/mnt/v": leaving}))
	s.wantCode("one whose claim is being deleted", err, fault.Conflict, "is being deleted")
	s.wantCode("its removal", s.RemoveVolume(t.Context(), leaving), fault.Conflict, "is mounted by the pod sandbox-"+string(user.Handle().ID))
	if got := run(t, user, "", "echo there > /mnt/v/x; cat /mnt/v/x"); got != "there" {
		t.Errorf("who has it has %q", got)
	}
	for _, path := range []string{"/.sandpit", "/.sandpit/disk/workspace", "/mnt/a:b"} {
		_, err := s.Create(t.Context(), s.mounting(map[string]sandbox.ID{path: leaving}))
		s.wantCode(path, err, fault.Invalid, path)
	}
}

// Volumes that one node at a time mounts have their pods on one node. The other node is one that nothing runs on.
func volumesOfOneNode(t *testing.T, c *cluster.Cluster, image runtime.Image) {
	s := serve(t, c, image, options(t, c))
	here, there := s.volume(t, 0), s.volume(t, 0)
	i := s.create(s.mounting(map[string]sandbox.ID{"/mnt/v": here}))
	run(t, i, "", "echo shared > /mnt/v/x")
	beside := s.create(s.mounting(map[string]sandbox.ID{"/mnt/v": here, "/mnt/w": s.volume(t, 0)}))
	if got := run(t, beside, "", "cat /mnt/v/x"); got != "shared" {
		t.Errorf("got %q", got)
	}
	if p, _ := s.pod(beside.Handle().ID); p.Spec.Affinity.NodeAffinity == nil {
		t.Error("it has two volumes, and may be where only one of them is")
	}

	node := "far-" + newNamespace()
	clustertest.Apply(t, c, `{"apiVersion":"v1","kind":"Node","metadata":{"name":"`+node+`","labels":{"kubernetes.io/hostname":"`+node+`"}},"spec":{"unschedulable":true}}`)
	t.Cleanup(func() {
		if out, err := c.Kubectl(context.Background(), "delete", "node", node, "--wait=false").CombinedOutput(); err != nil {
			t.Errorf("delete a node: %v: %s", err, out)
		}
	})
	pod := "sandbox-" + string(sandbox.NewID())
	clustertest.Apply(t, c, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"`+pod+`","namespace":"`+s.o.Space+`","labels":{"sandpit.dev/server":"`+s.o.Namespace+`","sandpit.dev/sandbox":"`+string(sandbox.NewID())+
		`","volume.sandpit.dev/`+string(there)+`":"mounted"}},"spec":{"nodeName":"`+node+`","containers":[{"name":"c","image":"none"}]}}`)
	defer clustertest.Kubectl(t, c, "-n", s.o.Space, "delete", "pod", pod, "--force", "--grace-period=0")

	_, err := s.Create(t.Context(), s.mounting(map[string]sandbox.ID{"/mnt/v": there}))
	s.wantCode("a volume that another node has", err, fault.Exhausted, "didn't match pod affinity rules")
	_, err = s.Create(t.Context(), s.mounting(map[string]sandbox.ID{"/mnt/v": there, "/mnt/w": here}))
	s.wantCode("volumes of two nodes", err, fault.Conflict, node, "kubernetes.volume_access")
	s.wantCode("a volume that another node has is removed", s.RemoveVolume(t.Context(), there), fault.Conflict, pod)
}
