# Faults that the tests of this folder have to find: fault(NAME TEST FILE FROM TO). In the FILE, FROM is replaced by TO, and
# TEST is built with that. Included by CMakeLists.txt, which makes a program of each; and run by itself, by
# `cmake -DFAULT=NAME -DSOURCES=. -DOUTPUT=f.c -P planted.cmake`, which writes the file.
if(CMAKE_SCRIPT_MODE_FILE)
  function(fault name test file from to)
    if(NOT name STREQUAL FAULT)
      return()
    endif()
    file(READ ${SOURCES}/${file} text)
    string(FIND "${text}" "${from}" at)
    if(at EQUAL -1)
      message(FATAL_ERROR "planted.cmake: ${name}: ${file} has no longer what is to be replaced: ${from}")
    endif()
    string(REPLACE "${from}" "${to}" text "${text}")
    file(WRITE ${OUTPUT} "${text}")
  endfunction()
endif()

fault(waits_for_later_passes lanes mesh/work_sharing.c "its.pass < mine.pass" "its.pass != mine.pass")
fault(announces_after_the_claim lanes mesh/work_sharing.c
      "        weft_sync_store(&s->of[lane].helping, packed(*taken));
        if (weft_sync_replace(left, &word, packed(rest))) return true;"
      "        if (weft_sync_replace(left, &word, packed(rest))) {
            weft_sync_store(&s->of[lane].helping, packed(*taken));
            return true;
        }")
fault(does_not_wait_for_helpers lanes mesh/work_sharing.c "    await_helpers(s, lane, taken, sign);" "    (void)await_helpers, (void)sign;")
fault(helps_in_another_pass lanes mesh/work_sharing.c "if (rest.pass != pass || rest.first == rest.end) break;" "(void)pass;
        if (rest.first == rest.end) break;")
fault(does_not_wake_who_waits_for_the_team lanes mesh/team.c
      "        if (weft_sync_sub(&team->left.value, 1) == 1) weft_word_wake(&team->left, WEFT_OF_THREADS);"
      "        (void)weft_sync_sub(&team->left.value, 1);")
fault(begins_what_is_begun lanes mesh/team.c "    return weft_sync_replace(&m->begun, &before, run);" "    if (weft_sync_load(&m->begun) != before) return false;
    weft_sync_store(&m->begun, run);
    return true;")
fault(does_no_part_beside_strangers lanes mesh/team.c "        leave_to_caller(team);" "        (void)leave_to_caller;
        if (has_stranger(team)) continue;")
fault(sleeps_without_saying_so lanes mesh/sync/sync.c "    weft_sync_add(&word->n_asleep, 1);" "    weft_sync_add(&word->n_asleep, 0);")
fault(ends_the_round_before_it_is_empty barrier ops/run/barrier.c
      "    weft_sync_store(&barrier->n_here, 0);
    const uint32_t ended = weft_sync_add(&barrier->round.value, ROUND);"
      "    const uint32_t ended = weft_sync_add(&barrier->round.value, ROUND);
    weft_sync_store(&barrier->n_here, 0);")
fault(breaks_off_without_a_word barrier ops/run/barrier.c
      "    (void)weft_sync_or(&barrier->round.value, BROKEN);
    weft_word_wake(&barrier->round, WEFT_OF_PROCESSES);"
      "    (void)weft_sync_or(&barrier->round.value, BROKEN);")
fault(goes_on_before_all_have_done exchange collectives/threads.c
      "    if (weft_sync_load(&mine->n_done) < comm->n_ranks - 1) return false;" "")
fault(rings_before_it_counts exchange collectives/threads.c
      "    if (weft_sync_add(&its->n_done, 1) + 1 == n_ranks - 1) weft_desk_ring(desk);"
      "    weft_desk_ring(desk);
    (void)n_ranks, (void)weft_sync_add(&its->n_done, 1);")
fault(reads_the_bell_after_the_last_look exchange collectives/pending.c
      "    const uint32_t seen = weft_sync_load(&desk->bell.value);
    weft_desk_poll(desk);"
      "    weft_desk_poll(desk);
    const uint32_t seen = weft_sync_load(&desk->bell.value);")
fault(writes_into_a_slot_that_is_read shm_reduce collectives/shm_reduce.c "w->n_taken > before && all_have_combined(w, before)" "w->n_taken > before")
fault(gives_into_a_slot_whose_sum_it_has_not_taken shm_reduce collectives/shm_reduce.c
      "w->n_taken > before && all_have_combined(w, before)" "all_have_combined(w, before)")
fault(numbers_pieces_before_it_is_known_who_comes_first shm_reduce collectives/shm_reduce.c
      "before.are_known && go_to_pieces(it, w)" "go_to_pieces(it, w)")
fault(combines_pieces_out_of_their_order shm_reduce collectives/shm_reduce.c " && w->n_combined == combined" "")
fault(combines_before_all_have_given shm_reduce collectives/shm_reduce.c
      "             all_have_given(w, combined, it->fingerprint))" "             (all_have_given(w, combined, it->fingerprint) || w->self == 0))")
fault(hands_over_without_release shm_reduce collectives/shm_reduce.c
      "weft_sync_store_release(&line->given, w->n_given)" "weft_sync_store_relaxed(&line->given, w->n_given)")
fault(changes_a_channel_without_a_version recorder collectives/watch/recorder.c
      "    weft_guarded_open(&channel->version);" "    weft_guarded_open(&channel->version), weft_guarded_open(&channel->version);")
fault(two_say_at_once_what_is_busy recorder collectives/watch/watch.c
      "    weft_lock_take(&writing);
    for (int i = 0; i < weft_n_recorders(); i++) {
        weft_recorder_head *head = &weft_recorder_at(i)->head;
        weft_guarded_write(&head->busy_version, head->busy, text, sizeof text);
    }
    weft_lock_give(&writing);"
      "    (void)writing;
    for (int i = 0; i < weft_n_recorders(); i++) {
        weft_recorder_head *head = &weft_recorder_at(i)->head;
        weft_guarded_write(&head->busy_version, head->busy, text, sizeof text);
    }")
fault(reader_sleeps_on_a_failure_of_another_batch dataset io/feed_read.c
      "if (is_wanted(dataset, s) || s->row != s->n_row) continue;"
      "if (is_wanted(dataset, s) || s->row != s->n_row || s->failed_row >= 0) continue;")
fault(compares_with_what_was_before_it_was_told watch collectives/watch/view.c
      "(weft_channels_differ(own, its) && !is_settled(own, its))" "((void)is_settled, weft_channels_differ(own, its))")
fault(speaks_before_the_call_does watch collectives/watch/view.c "(own->tells && !is_untold)" "(own->tells && !is_untold && false)")
fault(takes_the_call_after_the_counts watch collectives/watch/view.c
      "        if (read_channel(&head->channels[i], &view->channels[view->n_channels])) view->n_channels++;"
      "        if (read_channel(&head->channels[i], &view->channels[view->n_channels])) view->n_channels++;
    view->is_waiting = weft_record_read(recorder, weft_sync_load(&head->waiting), &record) && record.ended == 0;
    if (view->is_waiting) take_call(recorder, &record, view);")
fault(rings_before_it_says_that_it_ends watch collectives/watch/watch.c
      "    weft_sync_store(&watch.is_ending, 1);
    (void)!write(watch.wake, &(uint64_t){1}, sizeof(uint64_t));"
      "    (void)!write(watch.wake, &(uint64_t){1}, sizeof(uint64_t));
    weft_sync_store(&watch.is_ending, 1);")
fault(calms_down_after_it_has_looked watch collectives/watch/watch.c
      "    while (!weft_sync_load(&watch.is_ending)) {
" "    while (!weft_sync_load(&watch.is_ending)) {
        (void)!read(watch.wake, &(uint64_t){0}, sizeof(uint64_t));
")
fault(combines_what_is_not_shown_yet direct collectives/direct.c
      "if (weft_sync_load_acquire(&weft_shm_reduce_line_of(w, r)->shown) <= it->base)"
      "if (weft_sync_load_acquire(&weft_shm_reduce_line_of(w, r)->shown) < it->base)")
fault(shows_where_others_still_read direct collectives/direct.c "+ WEFT_SHM_REDUCE_SHOWN <=" "+ 2 * WEFT_SHM_REDUCE_SHOWN <=")
fault(goes_on_while_others_combine direct collectives/direct.c
      "if (weft_sync_load_acquire(&weft_shm_reduce_line_of(w, r)->done) <= it->base)"
      "if (weft_sync_load_acquire(&weft_shm_reduce_line_of(w, r)->done) <= it->base && r == w->self)")
fault(says_that_it_is_done_without_release direct collectives/direct.c
      "weft_sync_store_release(&weft_shm_reduce_line_of(w, w->self)->done, it->base + 1)"
      "weft_sync_store_relaxed(&weft_shm_reduce_line_of(w, w->self)->done, it->base + 1)")
fault(releases_before_it_combines direct collectives/direct.c
      "        if (it->exchange->error.status == WEFT_OK) weft_reduce_seen(it, see_peer);
        it->comm->engine->release(it->exchange);"
      "        it->comm->engine->release(it->exchange);
        if (it->exchange->error.status == WEFT_OK) weft_reduce_seen(it, see_peer);")
fault(lets_a_variable_be_written_before_it_is_copied save io/checkpoint/snapshot.c
      "return weft_sync_load(&s->left[k / s->n_local]) == 0;" "return weft_sync_load(&s->left[k / s->n_local]) <= 1;")
fault(wakes_nobody_when_all_is_copied save io/checkpoint/save.c
      "    save->is_taken = true;
    weft_condition_tell(&save->taken);" "    save->is_taken = true;")
fault(tells_of_a_save_that_was_given_up save io/checkpoint/save.c "save->phase == N_PHASES && save->error.status" "save->error.status")
fault(takes_an_item_twice save io/checkpoint/work.c
      "(i = weft_sync_add(&w->next, 1)) < weft_sync_load(&w->failed)"
      "(i = weft_sync_load(&w->next), weft_sync_store(&w->next, i + 1), i) < weft_sync_load(&w->failed)")
