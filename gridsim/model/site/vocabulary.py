"""Words that a Slurm site's files may hold, and what each would do to a schedule: followed, not followed, or nothing.

Names are those of the manual pages and of the readers of Slurm's own files, slurm.conf(5) and sacctmgr(1), versions
22.05 to 24.11, with what was taken out shortly before.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum

__all__ = ["Effect", "Notice", "Word", "canonical", "known", "matters", "notices"]


class Effect(IntEnum):
    """How much of a schedule a word changes, the most first; `none` for what is operational only."""

    order = 0
    """Who goes first, who is passed and who is preempted: priorities, kind of scheduler, preemption."""
    limits = 1
    """Who may have how much, and for how long."""
    resources = 2
    """What a job occupies, and where."""
    little = 3
    """A few seconds, or jobs that no log holds."""
    none = 4


@dataclass(frozen=True, slots=True)
class Word:
    """A word that Slurm knows.

    Attributes
    ----------
    name : str
        As the manual writes it.
    followed : bool
        Whether the simulation does what it says.
    effect : Effect
        Of one that is not followed; `Effect.none` where it has nothing to do with schedules.
    harmless : tuple of str
        Values, in lower case, with which it says nothing.
    """

    name: str
    followed: bool = False
    effect: Effect = Effect.none
    harmless: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Notice:
    """Something in a site's files that the simulation does not follow.

    Attributes
    ----------
    text : str
        Kind of line or list, and the word: ``SchedulerParameters bf_windwo``.
    count : int
        How often it occurs.
    effect : Effect
        What it would change.
    unknown : bool
        Whether Slurm has no such word, so that it is a slip of the pen or of a version that is not known here.
    nearest : str
        The word that is nearest to an unknown one; empty where none is near.
    outside : bool
        Whether it lies outside the time of the log, so that it has no effect.
    """

    text: str
    count: int = 1
    effect: Effect = Effect.little
    unknown: bool = False
    nearest: str = ""
    outside: bool = False


def _followed(text: str) -> Iterator[Word]:
    return (Word(name, followed=True) for name in text.split())


def _quiet(text: str) -> Iterator[Word]:
    return (Word(name) for name in text.split())


def _missing(effect: Effect, text: str) -> Iterator[Word]:
    """Words that are not followed; behind a colon values that say nothing, between bars."""
    for part in text.split():
        name, _, harmless = part.partition(":")
        yield Word(name, effect=effect, harmless=tuple(harmless.split("|")) if harmless else ())


def _table(*groups: Iterable[Word]) -> Mapping[str, Word]:
    return {word.name.lower(): word for group in groups for word in group}


_GENERAL = _table(
    _followed(
        """
        AccountingStorageEnforce DefMemPerCPU DefMemPerNode FairShareDampeningFactor JobRequeue MaxMemPerNode NodeName
        PartitionName PreemptExemptTime PreemptMode PreemptParameters PreemptType PriorityCalcPeriod
        PriorityDecayHalfLife PriorityFavorSmall PriorityFlags PriorityMaxAge PriorityType PriorityWeightAge
        PriorityWeightFairshare PriorityWeightJobSize PriorityWeightPartition PriorityWeightQOS SchedulerParameters
        PriorityWeightTRES PriorityUsageResetPeriod Licenses SchedulerType SelectType SelectTypeParameters Include
        """
    ),
    _missing(
        Effect.order,
        "PriorityWeightAssoc:0 PrioritySiteFactorPlugin:none|site_factor/none",
    ),
    _missing(
        Effect.limits, "EnforcePartLimits:no|any OverTimeLimit:0 ResvOverRun:0 DependencyParameters MCSPlugin:mcs/none"
    ),
    _missing(
        Effect.resources,
        """
        TopologyPlugin:none|topology/none|topology/default|topology/flat MaxMemPerCPU:0|unlimited DefCpuPerGPU
        DefMemPerGPU DownNodes NodeSet FrontendName SuspendProgram ResumeProgram BurstBufferType:none|burst_buffer/none
        NodeFeaturesPlugins AllowSpecResourcesUsage:0|no
        """,
    ),
    _missing(Effect.little, "CompleteWait:0 JobSubmitPlugins CliFilterPlugins"),
    _quiet(
        """
        AccountingStorageBackupHost AccountingStorageExternalHost AccountingStorageHost AccountingStorageLoc
        AccountingStorageParameters AccountingStoragePass AccountingStoragePort AccountingStorageTRES
        AccountingStorageType AccountingStorageUser AccountingStoreFlags AccountingStoreJobComment
        AcctGatherEnergyType AcctGatherFilesystemType AcctGatherInfinibandType AcctGatherInterconnectType
        AcctGatherNodeFreq AcctGatherProfileType AuthAltParameters AuthAltTypes AuthInfo AuthType BackupAddr
        BackupController BatchStartTimeout BcastExclude BcastParameters BurstBufferParameters CacheGroups
        CertmgrParameters
        CertmgrType CheckpointType ClusterName CommunicationParameters ControlAddr ControlMachine CoreSpecPlugin
        CpuFreqDef CpuFreqGovernors CredType CryptoType DataParserParameters DebugFlags DefaultStorageHost
        DefaultStorageLoc DefaultStoragePass DefaultStoragePort DefaultStorageType DefaultStorageUser DisableRootJobs
        EioTimeout Epilog EpilogMsgTime EpilogSlurmctld EpilogTimeout ExtSensorsFreq ExtSensorsType FastSchedule
        FederationParameters FirstJobId GetEnvTimeout GpuFreqDef GresTypes GroupUpdateForce GroupUpdateTime HashPlugin
        HealthCheckInterval HealthCheckNodeState HealthCheckProgram InactiveLimit InteractiveStepOptions
        JobAcctGatherFrequency JobAcctGatherParams JobAcctGatherType JobCheckpointDir JobCompHost JobCompLoc
        JobCompParams JobCompPass JobCompPassScript JobCompPort JobCompType JobCompUser JobContainerPlugin
        JobContainerType JobCredentialPrivateKey JobCredentialPublicCertificate JobFileAppend KeepAliveTime
        KillOnBadExit KillWait LaunchParameters LaunchType LogTimeFormat MailDomain MailProg MaxArraySize
        MaxBatchRequeue MaxDBDMsgs MaxJobCount MaxJobId MaxNodeCount MaxStepCount MaxTasksPerNode MCSParameters
        MemLimitEnforce MessageTimeout MinJobAge MpiDefault MpiParams PluginDir PlugStackConfig PowerParameters
        PowerPlugin PrEpParameters PrEpPlugins PriorityParameters PrioritySiteFactorParameters PrivateData
        ProctrackType Prolog PrologEpilogTimeout PrologFlags PrologSlurmctld PrologTimeout PropagatePrioProcess
        PropagateResourceLimits PropagateResourceLimitsExcept RebootProgram ReconfigFlags RequeueExit RequeueExitHold
        ResumeFailProgram ResumeRate ResumeTimeout ResvEpilog ResvProlog ReturnToService RoutePlugin
        SackdParameters SallocDefaultCommand SbcastParameters SchedulerAuth SchedulerPort SchedulerRootFilter
        SchedulerTimeSlice ScronParameters SlurmctldAddr SlurmctldDebug SlurmctldHost SlurmctldLogFile
        SlurmctldParameters SlurmctldPidFile SlurmctldPlugstack SlurmctldPort SlurmctldPrimaryOffProg
        SlurmctldPrimaryOnProg SlurmctldSyslogDebug SlurmctldTimeout SlurmdDebug SlurmdLogFile SlurmdParameters
        SlurmdPidFile SlurmdPort SlurmdSpoolDir SlurmdSyslogDebug SlurmdTimeout SlurmdUser SlurmSchedLogFile
        SlurmSchedLogLevel SlurmUser SrunEpilog SrunPortRange SrunProlog StateSaveLocation SuspendExcNodes
        SuspendExcParts SuspendExcStates SuspendRate SuspendTime SuspendTimeout SwitchParameters SwitchType TaskEpilog
        TaskPlugin TaskPluginParam TaskProlog TCPTimeout TLSParameters TLSType TmpFS TopologyParam TrackWCKey TreeWidth
        UnkillableStepProgram UnkillableStepTimeout UrlParserType UsePAM VSizeFactor WaitTime X11Parameters
        """
    ),
)

_SCHEDULER_PARAMETERS = _table(
    _followed(
        """
        bf_interval bf_resolution bf_window bf_max_job_test max_job_bf bf_max_job_user bf_max_job_part bf_max_job_assoc
        bf_max_job_start bf_max_job_user_part bf_max_job_array_resv bf_job_part_count_reserve bf_min_age_reserve
        bf_min_prio_reserve bf_window_linear default_queue_depth partition_job_depth sched_interval sched_min_interval
        batch_sched_delay defer assoc_limit_stop bf_one_resv_per_job preempt_reorder_count preempt_strict_order
        preempt_youngest_first
        """
    ),
    _missing(
        Effect.order,
        """
        bf_busy_nodes bf_running_job_reserve bf_hetjob_immediate bf_hetjob_prio bf_topopt_enable bf_topopt_iterations
        defer_batch max_switch_wait time_min_as_soft_limit bf_allow_magnetic_resv
        """,
    ),
    _missing(Effect.limits, "max_array_tasks max_depend_depth requeue_delay"),
    _missing(
        Effect.resources,
        "bf_licenses allow_zero_lic pack_serial_at_end reduce_completing_frag spec_cores_first delay_boot "
        "ignore_constraint_validation extra_constraints",
    ),
    _quiet(
        """
        bf_continue bf_max_time bf_yield_interval bf_yield_sleep bf_yield_rpc_cnt bf_node_space_size max_sched_time
        sched_max_job_start max_rpc_cnt bb_array_stage_cnt build_queue_timeout correspond_after_task_cnt default_gbytes
        disable_hetjob_steps disable_job_shrink enable_hetjob_steps enable_job_state_cache enable_user_top Ignore_NUMA
        ignore_prefer_validation inventory_interval jobs_per_user_per_hour max_script_size max_submit_line_size
        no_backup_scheduling no_env_cache nohold_on_prolog_fail preempt_send_user_signal requeue_setup_env_fail
        salloc_wait_nodes sbatch_wait_nodes step_retry_count step_retry_time whole_hetjob whole_pack
        """
    ),
)  # a pass takes no time here, so it is never cut short: what limits its duration says nothing

_NODE = _table(
    _followed(
        """
        NodeName CPUs Procs Sockets SocketsPerBoard Boards CoresPerSocket ThreadsPerCore RealMemory Weight Feature
        Features Gres CoreSpecCount CpuSpecList MemSpecLimit State
        """
    ),
    _missing(Effect.order, "TRESWeights"),
    _missing(Effect.resources, "RestrictedCoresPerGPU Topology"),
    _quiet("NodeHostname NodeAddr Port TmpDisk Reason BcastAddr CpuBind CpuSpecsOnline Parameters"),
)

_PARTITION = _table(
    _followed(
        """
        PartitionName Nodes Default MaxTime DefaultTime Priority PriorityJobFactor PriorityTier OverSubscribe Shared
        MaxNodes MinNodes QOS PreemptMode GraceTime State AllowAccounts DenyAccounts AllowQos DenyQos ReqResv
        DefMemPerNode DefMemPerCPU MaxMemPerNode TRESBillingWeights AllowGroups MaxCPUsPerNode LLN
        """
    ),
    _missing(Effect.limits, "MaxCPUsPerSocket:unlimited OverTimeLimit:0 Alternate"),
    _missing(
        Effect.resources,
        """
        MaxMemPerCPU:0|unlimited DefMemPerGPU DefCpuPerGPU JobDefaults ExclusiveUser:no ExclusiveTopo:no
        SelectTypeParameters Topology
        """,
    ),
    _quiet(
        "Hidden RootOnly DisableRootJobs AllocNodes PowerDownOnIdle ResumeTimeout SuspendTime SuspendTimeout CpuBind"
    ),
)

_QOS = _table(
    _followed(
        """
        Name Priority UsageFactor MaxWall MaxWallDurationPerJob GrpJobs GrpSubmit GrpSubmitJobs MaxJobs MaxJobsPU
        MaxJobsPerUser MaxSubmit MaxSubmitJobs MaxSubmitPU MaxSubmitJobsPU MaxSubmitJobsPerUser MaxJobsPA
        MaxJobsPerAccount GrpTRES MaxTRES MaxTRESPerJob MaxTRESPU MaxTRESPerUser MaxTRESPA MaxTRESPerAccount GrpCPUs
        MaxCPUs MaxCPUsPerJob MaxCPUsPU MaxCPUsPerUser Preempt PreemptMode GraceTime PreemptExemptTime GrpTRESMins
        GrpTRESRunMins GrpTRESRunMin MaxTRESPerNode MaxTRESMins MaxTRESMinsPerJob MinTRES MinTRESPerJob MinCPUs
        MinCPUsPerJob GrpNodes GrpMemory GrpCPUMins GrpCPURunMins MaxNodes MaxNodesPerJob MaxNodesPU MaxNodesPerUser
        MaxCPUMins MaxCPUMinsPerJob Flags
        """
    ),
    _missing(
        Effect.limits,
        """
        GrpWall MaxTRESRunMinsPA MaxTRESRunMinsPU MaxSubmitPA MaxSubmitJobsPA MaxSubmitJobsPerAccount GrpJobsAccrue
        MaxJobsAccrue MaxJobsAccruePA MaxJobsAccruePU MaxJobsAccruePerUser MaxJobsAccruePerAccount MinPrioThres
        MinPrioThreshold LimitFactor:1.000000|1|-1 MaxCPURunMinsPU
        """,
    ),
    _quiet("UsageThres UsageThreshold Description ID"),
)

_ASSOCIATION = _table(
    _followed(
        """
        Fairshare Share RawShares RawUsage MaxJobs MaxSubmitJobs MaxSubmit GrpJobs GrpSubmitJobs GrpSubmit
        MaxWallDurationPerJob MaxWall DefaultQOS GrpTRES MaxTRES MaxTRESPerJob GrpCPUs MaxCPUs MaxCPUsPerJob MaxNodes
        MaxNodesPerJob Account User ParentName GrpTRESMins GrpTRESRunMins GrpTRESRunMin MaxTRESPerNode MaxTRESMins
        MaxTRESMinsPerJob GrpNodes GrpMemory GrpCPUMins GrpCPURunMins MaxCPUMins MaxCPUMinsPerJob
        """
    ),
    _missing(
        Effect.limits,
        """
        GrpWall GrpJobsAccrue MaxJobsAccrue MinPrioThreshold MinPrioThres
        """,
    ),
    _quiet(
        """
        Cluster Partition QOS Description Organization DefaultAccount AdminLevel Coordinator Coordinators Priority
        NormShares NormUsage EffectvUsage LevelFS TRESRunMins DefaultWCKey WCKeys Classification Flags Comment ID LFT
        RGT ParentID Lineage Deleted QOSRawLevel
        """
    ),
)

_FLAGS = {
    "SelectTypeParameters": _table(
        _followed("CR_Core CR_CPU CR_Core_Memory CR_CPU_Memory CR_Memory CR_LLN"),
        _missing(
            Effect.resources,
            """
            CR_Socket CR_Socket_Memory CR_ONE_TASK_PER_CORE CR_Pack_Nodes CR_CORE_DEFAULT_DIST_BLOCK
            LL_SHARED_GRES MULTIPLE_SHARING_GRES_PJ ENFORCE_BINDING_GRES ONE_TASK_PER_SHARING_GRES
            """,
        ),
        _quiet("OTHER_CONS_RES OTHER_CONS_TRES NONE"),
    ),
    "PriorityFlags": _table(
        _followed(
            "SMALL_RELATIVE_TO_TIME NO_FAIR_TREE FAIR_TREE ACCRUE_ALWAYS CALCULATE_RUNNING MAX_TRES MAX_TRES_GRES"
        ),
        _missing(
            Effect.order,
            """
            DEPTH_OBLIVIOUS INCR_ONLY NO_NORMAL_ALL NO_NORMAL_ASSOC NO_NORMAL_PART NO_NORMAL_QOS
            NO_NORMAL_TRES TICKET_BASED
            """,
        ),
    ),
    "PreemptParameters": _table(
        _followed("reorder_count strict_order youngest_first"),
        _missing(Effect.order, "min_exempt_priority reclaim_licenses suspend_grace_time"),
        _quiet("send_user_signal"),
    ),
    "SchedulerType": _table(_followed("sched/backfill sched/builtin")),
    "PriorityType": _table(_followed("priority/basic priority/multifactor")),
    "PreemptType": _table(_followed("preempt/none preempt/partition_prio preempt/qos")),
    "SelectType": _table(
        _followed("select/cons_tres select/cons_res select/linear"), _missing(Effect.resources, "select/cray_aries")
    ),
    "PreemptMode": _table(
        _followed("OFF CANCEL REQUEUE WITHIN"), _missing(Effect.order, "SUSPEND GANG PRIORITY CHECKPOINT")
    ),
    "QOS Flags": _table(
        _followed("DenyOnLimit NoDecay"),
        _missing(
            Effect.limits,
            """
            EnforceUsageThreshold NoReserve OverPartQOS PartitionMaxNodes PartitionMinNodes
            PartitionQOS PartitionTimeLimit Relative RequiresReservation UsageFactorSafe
            """,
        ),
        _quiet("Deleted None"),
    ),
}

_SECTIONS: Mapping[str, Mapping[str, Word]] = {
    "": _GENERAL,
    "SchedulerParameters": _SCHEDULER_PARAMETERS,
    "NodeName": _NODE,
    "PartitionName": _PARTITION,
    "QOS": _QOS,
    "association": _ASSOCIATION,
    **_FLAGS,
}
"""Words by the kind of line or list that they stand in; those of a line of their own under ''."""


def known(section: str, word: str) -> Word | None:
    """A word of a section, in whatever case; None where Slurm has none such.

    Examples
    --------
    >>> known("", "priorityweightage").name, known("SchedulerParameters", "bf_windwo")
    ('PriorityWeightAge', None)
    """
    return _SECTIONS[section].get(word.lower())


def matters(section: str, word: str, value: str = "") -> bool:
    """Whether a word is to be told: an unknown one, or one that is not followed and would change the schedule.

    Examples
    --------
    >>> matters("", "PriorityWeightAssoc", "0"), matters("", "PriorityWeightAssoc", "9"), matters("", "SlurmdPort", "1")
    (False, True, False)
    """
    found = known(section, word)
    if found is None:
        return True
    return not found.followed and found.effect < Effect.none and value.lower() not in found.harmless


def canonical(section: str, word: str) -> str:
    """The word as the manual writes it, as it stands where Slurm has none such."""
    found = known(section, word)
    return word if found is None else found.name


def notices(counts: Mapping[str, int]) -> tuple[Notice, ...]:
    """What is told of words that were counted: first the unknown ones, then by what they would change, then by name.

    Examples
    --------
    >>> [(it.text, it.nearest) for it in notices({"DownNodes": 1, "PriorityWeightAssoc": 1, "PriorityWeigthAge": 1})]
    [('PriorityWeigthAge', 'PriorityWeightAge'), ('PriorityWeightAssoc', ''), ('DownNodes', '')]
    """
    found = [_notice(text, count) for text, count in counts.items()]
    return tuple(sorted(found, key=lambda it: (not it.unknown, it.effect, it.text)))


def _notice(text: str, count: int) -> Notice:
    section, word = _split(text)
    table = _SECTIONS.get(section)
    if table is None:  # reservations: what is counted of them is not modelled
        return Notice(text, count, Effect.resources)
    found = table.get(word.lower())
    if found is not None:
        return Notice(text, count, found.effect if found.effect < Effect.none else _of_value(section, found.name))
    near = difflib.get_close_matches(word.lower(), list(table), n=1, cutoff=0.6)
    return Notice(text, count, Effect.order, unknown=True, nearest=table[near[0]].name if near else "")


def _of_value(section: str, name: str) -> Effect:
    """What a word that is followed changes where one of its values is not."""
    if name.startswith(("Preempt", "Priority", "Scheduler")):
        return Effect.order
    return Effect.limits if section in ("QOS", "association") else Effect.resources


def _split(text: str) -> tuple[str, str]:
    """Section and word of a text that was counted, without what is told behind it."""
    parts = re.split(r"[ =]", text)
    for size in (2, 1):
        section = " ".join(parts[:size])
        if section in _SECTIONS and len(parts) > size:
            return section, parts[size]
    if parts[0] == "Reservation":
        return parts[0], text
    return "", parts[0]
