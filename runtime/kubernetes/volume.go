// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"cmp"
	"context"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sandpit.dev/fault"
	"sandpit.dev/runtime"
	"sandpit.dev/runtime/kubernetes/kubeapi"
	"sandpit.dev/sandbox"
)

var _ runtime.Volumer = (*Driver)(nil)

// volumeBytes is what a volume's claim asks for where no limit is given: there is none without a size.
const volumeBytes = 10 << 30

// volumeName is that of a volume's claim. Nothing is taken for one but what has the labels, too.
func volumeName(id sandbox.ID) string { return "volume-" + string(id) }

func checkVolumeID(id sandbox.ID) error {
	if sandbox.ValidID(string(id)) {
		return nil
	}
	return fault.InvalidField("id", "%q is not a valid volume id", sandbox.Clip(string(id), 40))
}

// CreateVolume makes a claim. It may be bound only when the first pod has it.
func (d *Driver) CreateVolume(ctx context.Context, id sandbox.ID, limit int64) error {
	if err := checkVolumeID(id); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	work, cancel := d.finishing(ctx, undoPatience)
	defer cancel()
	made, err := kubeapi.Claims().Create(work, d.api, d.space, d.volumeClaim(id, cmp.Or(limit, volumeBytes)))
	if fault.Is(err, fault.Exists) {
		return d.taken(work, id)
	}
	if err != nil {
		return err
	}
	if err = ctx.Err(); err != nil {
		if undo := kubeapi.Claims().Delete(work, d.api, d.space, made.Name, made.UID, -1); undo != nil && !fault.Is(undo, fault.NotFound) {
			d.log.Error("a volume that was not made may be left behind", "volume", id, "error", undo)
		}
	}
	return err
}

func (d *Driver) volumeClaim(id sandbox.ID, bytes int64) *corev1.PersistentVolumeClaim {
	labels := map[string]string{labelServer: d.namespace, labelVolume: string(id)}
	maps.Copy(labels, d.o.Placement.Labels)
	c := &corev1.PersistentVolumeClaim{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"},
		ObjectMeta: metav1.ObjectMeta{Name: volumeName(id), Labels: labels},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{cmp.Or(corev1.PersistentVolumeAccessMode(d.o.VolumeAccess), corev1.ReadWriteOnce)},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: *resource.NewQuantity(bytes, resource.BinarySI)}},
		},
	}
	if class := cmp.Or(d.o.VolumeClass, d.o.StorageClass); class != "" {
		c.Spec.StorageClassName = &class
	}
	return c
}

// taken says that there is a claim of this name already.
func (d *Driver) taken(ctx context.Context, id sandbox.ID) error {
	_, err := d.volume(ctx, id)
	if err == nil {
		return fault.New(fault.Exists, "volume %s exists", id)
	}
	if fault.Is(err, fault.NotFound) { // that it is another's: this server makes no other with the name
		return fault.New(fault.Conflict, "the namespace %s has a claim %s, which is none of this server's", d.space, volumeName(id)).
			WithRemedy("delete it: kubectl -n %s delete pvc %s", d.space, volumeName(id))
	}
	return err
}

// volume returns the claim of a volume, if that is this server's, and stays.
func (d *Driver) volume(ctx context.Context, id sandbox.ID) (*corev1.PersistentVolumeClaim, error) {
	c, err := kubeapi.Claims().Get(ctx, d.api, d.space, volumeName(id))
	if err == nil && (c.Labels[labelServer] != d.namespace || c.Labels[labelVolume] != string(id)) {
		err = fault.New(fault.NotFound, "the claim lacks the labels of this server's")
	}
	if fault.Is(err, fault.NotFound) {
		return nil, fault.Wrap(fault.NotFound, err, "volume %s has no claim in the namespace %s", id, d.space)
	}
	if err == nil && c.DeletionTimestamp != nil {
		if users, failed := d.users(ctx, id); failed == nil && len(users) == 0 { // it was removed, and is on its way
			return nil, fault.New(fault.NotFound, "volume %s was removed", id)
		}
		err = fault.New(fault.Conflict, "the claim %s of volume %s is being deleted, and what is on it is lost once no pod has it", c.Name, id).
			WithRemedy("copy what is needed out of the sandboxes that mount it, then delete the volume and make another")
	}
	return c, err
}

// RemoveVolume deletes the claim of a volume that no pod mounts.
func (d *Driver) RemoveVolume(ctx context.Context, id sandbox.ID) error {
	if err := checkVolumeID(id); err != nil {
		return err
	}
	d.volumes.Lock() // against who is about to mount it
	defer d.volumes.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	c, err := kubeapi.Claims().Get(ctx, d.api, d.space, volumeName(id))
	if fault.Is(err, fault.NotFound) || err == nil && (c.Labels[labelServer] != d.namespace || c.Labels[labelVolume] != string(id)) {
		return nil
	}
	if err != nil {
		return err
	}
	users, err := d.users(ctx, id)
	if err != nil {
		return err
	}
	if len(users) > 0 {
		return fault.New(fault.Conflict, "volume %s is mounted by the pod %s", id, users[0].Name).WithRemedy("stop the sandboxes that mount it first")
	}
	if err = kubeapi.Claims().Delete(ctx, d.api, d.space, c.Name, c.UID, -1); fault.Is(err, fault.NotFound) {
		return nil
	}
	return err
}

// users returns the pods of this server's that have a volume, and that are not over.
func (d *Driver) users(ctx context.Context, id sandbox.ID) ([]corev1.Pod, error) {
	pods, _, err := kubeapi.Pods().List(ctx, d.api, d.space, d.ours()+","+mountLabel(id))
	return slices.DeleteFunc(pods, func(p corev1.Pod) bool {
		_, over := exitOf(&p)
		return over
	}), err
}

// VolumeUsage says that nobody counts: what a volume holds is known to its class alone.
func (d *Driver) VolumeUsage(ctx context.Context, id sandbox.ID) (int64, error) {
	if err := checkVolumeID(id); err != nil {
		return 0, err
	}
	if _, err := d.volume(ctx, id); err != nil && !fault.Is(err, fault.Conflict) {
		return 0, err
	}
	return -1, nil
}

// Volumes returns the volumes of this server's that have a claim.
func (d *Driver) Volumes(ctx context.Context) ([]sandbox.ID, error) {
	claims, _, err := kubeapi.Claims().List(ctx, d.api, d.space, labelServer+"="+d.namespace+","+labelVolume)
	if err != nil {
		return nil, err
	}
	var out []sandbox.ID
	for _, c := range claims {
		if id := sandbox.ID(c.Labels[labelVolume]); c.DeletionTimestamp == nil && sandbox.ValidID(string(id)) && c.Name == volumeName(id) {
			out = append(out, id)
		}
	}
	return out, nil
}
