-- call_text — what is a CUDA API call called, and what does the host do in it?
--
-- Exporters add the version of the interface to a name (`cudaLaunchKernel_v7000`, `_ptsz` for the
-- default stream of a thread). `_v2` of a driver call is part of its name and stays.
CREATE OR REPLACE MACRO nsys.call_text(p_name) AS
    regexp_replace(p_name, '(_v[0-9]{4,})?(_pt(sz|ds))?$', '');

-- What a call is to the host that makes it: `synchronise` waits for the device, which copies and
-- sets without Async in their name do too; `memory` allocates, frees, maps or pins; `launch` gives
-- a kernel or a graph to a stream; anything else is `call`.
CREATE OR REPLACE MACRO nsys.call_activity(p_name) AS
    CASE
        WHEN regexp_matches(p_name, '^cu(da)?(Stream|Device|Event|Ctx|Context|Thread)Synchronize')
            THEN 'synchronise'
        WHEN regexp_matches(
            p_name,
            '^cuda(Malloc|Free|HostAlloc|HostRegister|HostUnregister|MemPool|MemAdvise|MemPrefetch)'
            || '|^cuMem(Alloc|Free|HostAlloc|HostRegister|HostUnregister|Pool|Create|Release|Map'
            || '|Unmap|Address|SetAccess|Advise|Prefetch|Export|Import)|^cuMemorypool'
        )
            THEN 'memory'
        WHEN regexp_matches(p_name, '^cu(da)?(Launch|GraphLaunch)')
            THEN 'launch'
        WHEN regexp_matches(p_name, '^cuda(Memcpy|Memset)|^cuMem(cpy|set)')
            AND NOT contains(p_name, 'Async')
            THEN 'synchronise'
        ELSE 'call'
    END;
