// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sandpit.dev/fault"
	"sandpit.dev/runtime/kubernetes/kubeapi"
	"sandpit.dev/sandbox"
)

// Where the disk and the volumes are in a pod that has volumes.
const (
	insideDir     = "/.sandpit"
	insideDisk    = insideDir + "/disk"    // the directories of the disk once more, without what is mounted in them
	insideVolumes = insideDir + "/volumes" // whole volumes, while places for them are made
)

// placesContainer is the init container that makes places for volumes.
const placesContainer = "places"

// exitBlocked is what that ends with where something is in the way: see cmd/sandpit-agent.
const exitBlocked = 4

// places is what the agent is told of them, see package agent/boot/plain.
type places struct {
	UID  uint32        `json:"uid"`
	GID  uint32        `json:"gid"`
	Home string        `json:"home"`
	Disk []string      `json:"disk"`
	Root string        `json:"root"`
	All  []volumePlace `json:"all"`
}

type volumePlace struct {
	Path  string `json:"path"`
	Whole string `json:"whole"`
	Sub   string `json:"sub,omitempty"`
}

// checkMounts refuses volumes that no pod can have.
func checkMounts(mounts []sandbox.Mount) error {
	if err := sandbox.CheckMounts(mounts); err != nil {
		return err
	}
	for n, m := range mounts {
		field := "mounts[" + strconv.Itoa(n) + "].path"
		if m.Path == insideDir || strings.HasPrefix(m.Path, insideDir+"/") {
			return fault.InvalidField(field, "%q is in %s, which is the agent's", sandbox.Clip(m.Path, 80), insideDir).WithRemedy("choose a directory of its own, for instance /mnt/data")
		}
		if strings.Contains(m.Path, ":") {
			return fault.InvalidField(field, "%q has a colon, and Kubernetes mounts nothing on such a path", sandbox.Clip(m.Path, 80)).WithRemedy("choose a path without one")
		}
	}
	return nil
}

// mountVolumes gives a pod volumes. An init container with the sandbox's own image makes places for them, so that no link that the sandbox left
// on its disk, or another on a volume, is followed by the node as it mounts them.
func (d *Driver) mountVolumes(p *corev1.Pod, mounts []sandbox.Mount) error {
	c := &p.Spec.Containers[0]
	told := places{UID: userID, GID: userID, Home: userHome, Disk: diskDirs(), Root: insideRoot + "/upper"}
	maker := corev1.Container{
		Name: placesContainer, Image: c.Image, ImagePullPolicy: c.ImagePullPolicy, Env: c.Env, Resources: c.Resources,
		SecurityContext: makerRights(c.SecurityContext), VolumeMounts: slices.Clone(c.VolumeMounts), TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
	}
	// What is mounted in the place of a directory of the disk hides it. The agent looks at the disk elsewhere.
	c.VolumeMounts = slices.DeleteFunc(c.VolumeMounts, func(v corev1.VolumeMount) bool {
		return slices.ContainsFunc(mounts, func(m sandbox.Mount) bool { return m.Path == v.MountPath })
	})
	for name, path := range onDisk() {
		if path != insideLog {
			c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: diskVolume, MountPath: insideDisk + path, SubPath: name})
		}
	}
	for _, m := range mounts {
		name := volumeName(m.Volume)
		whole := insideVolumes + "/" + string(m.Volume)
		if p.Labels[mountLabel(m.Volume)] == "" {
			p.Labels[mountLabel(m.Volume)] = mounted
			p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}})
			maker.VolumeMounts = append(maker.VolumeMounts, corev1.VolumeMount{Name: name, MountPath: whole})
		}
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: name, MountPath: m.Path, SubPath: m.Sub, ReadOnly: m.ReadOnly})
		told.All = append(told.All, volumePlace{Path: m.Path, Whole: whole, Sub: m.Sub})
	}
	text, err := json.Marshal(told)
	maker.Command, maker.Args = []string{insideProgram}, []string{"places", string(text)}
	p.Spec.InitContainers = append(p.Spec.InitContainers, maker)
	return err
}

// makerRights are those of the container that makes places, by those of the sandbox's.
func makerRights(of *corev1.SecurityContext) *corev1.SecurityContext {
	s, yes := *of, true
	s.ReadOnlyRootFilesystem = &yes
	s.Capabilities = &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}, Add: []corev1.Capability{"CHOWN", "DAC_OVERRIDE", "FOWNER"}}
	return &s
}

// tryMake makes a pod with volumes that are there, and that nobody removes meanwhile.
func (i *Instance) tryMake(ctx context.Context, p *corev1.Pod, mounts []sandbox.Mount) (*corev1.Pod, error) {
	if len(mounts) > 0 {
		i.d.volumes.RLock()
		defer i.d.volumes.RUnlock()
		if err := i.d.join(ctx, p, mounts); err != nil {
			return nil, err
		}
	}
	i.d.nodes.avoid(&p.Spec)
	return kubeapi.Pods().Create(ctx, i.d.api, i.d.space, p)
}

// join has a pod be scheduled where the volumes can be had that one node at a time mounts: where other pods have them.
func (d *Driver) join(ctx context.Context, p *corev1.Pod, mounts []sandbox.Mount) error {
	var single []sandbox.ID
	for _, m := range mounts {
		c, err := d.volume(ctx, m.Volume)
		if err != nil {
			return err
		}
		if !slices.Contains(single, m.Volume) && !slices.Contains(c.Spec.AccessModes, corev1.ReadWriteMany) {
			single = append(single, m.Volume)
		}
	}
	if len(single) == 0 {
		return nil
	}
	p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{}}
	for _, id := range single {
		p.Spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution = append(p.Spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution, corev1.PodAffinityTerm{
			TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{labelServer: d.namespace, mountLabel(id): mounted}},
		})
	}
	if len(single) == 1 {
		return nil
	}
	// Of several the scheduler looks for pods that have them all.
	node, err := d.nodeOf(ctx, single)
	if err == nil && node != "" {
		p.Spec.Affinity.NodeAffinity = &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchFields: []corev1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}},
		}}}}
	}
	return err
}

// nodeOf returns the node on which volumes are mounted; "": none is.
func (d *Driver) nodeOf(ctx context.Context, volumes []sandbox.ID) (node string, err error) {
	for _, id := range volumes {
		users, err := d.users(ctx, id)
		if err != nil {
			return "", err
		}
		for _, u := range users {
			switch {
			case u.Spec.NodeName == "" || u.Spec.NodeName == node:
			case node != "":
				return "", fault.New(fault.Conflict, "volume %s is mounted on the node %s, another of the sandbox's volumes on %s, and one node at a time mounts each", id, u.Spec.NodeName, node).
					WithRemedy("stop the sandboxes that mount one of them, or use a class with kubernetes.volume_access: ReadWriteMany")
			default:
				node = u.Spec.NodeName
			}
		}
	}
	return node, nil
}

// blocked returns what the container that makes places for volumes said as it failed; nil: it did not.
func (i *Instance) blocked(p *corev1.Pod) error {
	for _, s := range p.Status.InitContainerStatuses {
		t := s.State.Terminated
		if s.Name != placesContainer || t == nil || t.ExitCode == 0 {
			continue
		}
		why := sandbox.Clip(strings.TrimPrefix(strings.TrimSpace(t.Message), programName+": "), 2*maxSaid)
		if t.ExitCode == exitBlocked {
			return fault.New(fault.Conflict, "%s", why).WithRemedy("remove what is there, or choose another path")
		}
		return fault.New(fault.Unavailable, "the volumes of sandbox %s cannot be made ready: %s", i.id, said(t.Reason, why)).
			WithRemedy("their class has to let root give directories to another user")
	}
	return nil
}

// pending returns the claims of a pod that are not bound, in words, as far as they can be told.
func (i *Instance) pending(ctx context.Context, p *corev1.Pod) (what, remedy string) {
	for _, v := range p.Spec.Volumes {
		if v.PersistentVolumeClaim == nil || v.Name == diskVolume {
			continue
		}
		id := sandbox.ID(strings.TrimPrefix(v.Name, volumeName("")))
		if c, err := i.d.volume(ctx, id); err == nil && c.Status.Phase == corev1.ClaimBound {
			continue
		}
		return "volume " + string(id) + " of sandbox " + string(i.id), "see kubectl -n " + i.d.space + " describe pvc " + v.Name +
			", and whether kubernetes.volume_class is one of the cluster's that can kubernetes.volume_access"
	}
	return "the disk of sandbox " + string(i.id), "see kubectl -n " + i.d.space + " describe pvc " + objectName(i.id) + ", and whether kubernetes.storage_class is one of the cluster's"
}
