package main

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// started is the time of starts in all states.
var started = metav1.Date(2026, 11, 2, 10, 0, 0, 0, time.UTC)

func (g *generator) job() state {
	completions := pick[int32](g, 1, 1, 2, 3, 5, 8)
	object := &batchv1.Job{
		ObjectMeta: metadata(1),
		Spec: batchv1.JobSpec{
			Completions: &completions, Parallelism: ptr.To(g.between(1, completions)), BackoffLimit: ptr.To[int32](6),
			Template: template(),
		},
	}
	if g.chance(8) {
		// A work queue: the pods decide when the work is done.
		object.Spec.Completions = nil
	}
	stages := []func(*batchv1.Job){
		func(*batchv1.Job) {}, g.runningJob, g.runningJob, g.runningJob, g.resumedJob, g.completeJob, g.completeJob,
		g.failedJob, g.failedJob, g.endingJob, g.suspendedJob,
	}
	pick(g, stages...)(object)
	return state{untyped("batch/v1", "Job", object), false}
}

func setJobCondition(object *batchv1.Job, kind batchv1.JobConditionType, status corev1.ConditionStatus, reason string) {
	object.Status.Conditions = append(object.Status.Conditions, batchv1.JobCondition{
		Type: kind, Status: status, Reason: reason,
	})
}

func (g *generator) runningJob(object *batchv1.Job) {
	completions := ptr.Deref(object.Spec.Completions, *object.Spec.Parallelism)
	object.Status.StartTime = &started
	object.Status.Succeeded = g.between(0, completions-1)
	object.Status.Active = min(completions-object.Status.Succeeded, *object.Spec.Parallelism)
	object.Status.Ready = ptr.To(g.upTo(object.Status.Active))
	object.Status.Failed = pick(g, 0, 0, g.between(1, 6))
}

// resumedJob was suspended before.
func (g *generator) resumedJob(object *batchv1.Job) {
	pick(g, g.runningJob, g.completeJob, g.failedJob)(object)
	conditions := object.Status.Conditions
	object.Status.Conditions = nil
	setJobCondition(object, batchv1.JobSuspended, corev1.ConditionFalse, "JobResumed")
	object.Status.Conditions = append(object.Status.Conditions, conditions...)
}

func (g *generator) completeJob(object *batchv1.Job) {
	g.runningJob(object)
	object.Status.Active, object.Status.Ready = 0, ptr.To[int32](0)
	object.Status.CompletionTime = &started
	reason := pick(g, "CompletionsReached", "CompletionsReached", "SuccessPolicy")
	if reason == "CompletionsReached" {
		object.Status.Succeeded = ptr.Deref(object.Spec.Completions, *object.Spec.Parallelism)
	}
	if !g.chance(6) {
		setJobCondition(object, batchv1.JobSuccessCriteriaMet, corev1.ConditionTrue, reason)
	}
	setJobCondition(object, batchv1.JobComplete, corev1.ConditionTrue, reason)
}

func (g *generator) failedJob(object *batchv1.Job) {
	g.runningJob(object)
	object.Status.Active, object.Status.Ready = 0, ptr.To[int32](0)
	object.Status.Failed = g.between(1, 7)
	reason := pick(g, "BackoffLimitExceeded", "DeadlineExceeded", "PodFailurePolicy", "FailedIndexes",
		"MaxFailedIndexesExceeded")
	if !g.chance(6) {
		setJobCondition(object, batchv1.JobFailureTarget, corev1.ConditionTrue, reason)
	}
	setJobCondition(object, batchv1.JobFailed, corev1.ConditionTrue, reason)
}

// endingJob has a result, and pods that have not ended yet.
func (g *generator) endingJob(object *batchv1.Job) {
	g.runningJob(object)
	object.Status.Terminating = ptr.To(g.between(1, 3))
	if g.chance(2) {
		setJobCondition(object, batchv1.JobFailureTarget, corev1.ConditionTrue, "BackoffLimitExceeded")
	} else {
		setJobCondition(object, batchv1.JobSuccessCriteriaMet, corev1.ConditionTrue, "SuccessPolicy")
	}
}

// suspendedJob was suspended at its creation or later.
func (g *generator) suspendedJob(object *batchv1.Job) {
	object.Generation = int64(g.between(1, 3))
	object.Spec.Suspend = ptr.To(true)
	object.Status.Succeeded = g.between(0, *object.Spec.Parallelism-1)
	setJobCondition(object, batchv1.JobSuspended, corev1.ConditionTrue, "JobSuspended")
}

func (g *generator) cronJob() state {
	object := &batchv1.CronJob{
		ObjectMeta: metadata(g.generation()),
		Spec: batchv1.CronJobSpec{
			Schedule:    pick(g, "@hourly", "0 3 * * *", "*/5 * * * *"),
			JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: template()}},
		},
	}
	if g.chance(4) {
		object.Spec.Suspend = ptr.To(true)
	}
	if g.chance(6) {
		return state{untyped("batch/v1", "CronJob", object), false}
	}
	hour := func() *metav1.Time {
		return ptr.To(metav1.NewTime(started.Add(-time.Duration(g.IntN(30)) * time.Hour)))
	}
	object.Status.LastScheduleTime = hour()
	if !g.chance(3) {
		object.Status.LastSuccessfulTime = hour()
	}
	if g.chance(3) {
		object.Status.Active = []corev1.ObjectReference{{Kind: "Job", Name: "podinfo-1", Namespace: "apps"}}
	}
	return state{untyped("batch/v1", "CronJob", object), g.chance(2)}
}
