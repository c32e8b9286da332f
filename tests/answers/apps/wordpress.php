<?php
// What a site does with its database, by WordPress's own functions. Prints what came of each step, which must not depend
// on the engine. Usage: php wordpress.php DIRECTORY
$_SERVER += ['HTTP_HOST' => 'localhost', 'REQUEST_URI' => '/', 'REQUEST_METHOD' => 'GET', 'SERVER_PROTOCOL' => 'HTTP/1.1', 'SERVER_NAME' => 'localhost', 'REMOTE_ADDR' => '127.0.0.1'];
define('WP_INSTALLING', true);
chdir($argv[1]);
require 'wp-load.php';
require_once ABSPATH . 'wp-admin/includes/upgrade.php';
require_once ABSPATH . 'wp-admin/includes/taxonomy.php';
require_once ABSPATH . 'wp-admin/includes/user.php';

function say(...$values) {
    global $wpdb;
    echo implode(' ', array_map(fn($value) => is_scalar($value) ? var_export($value, true) : json_encode($value), $values)), $wpdb->last_error ? " error: $wpdb->last_error" : '', "\n";
    $wpdb->last_error = '';
}

function_exists('wp_mail') || eval('function wp_mail() { return true; }');
$installed = wp_install('Site', 'admin', 'admin@example.org', true, '', 'secret');
say('installed', $installed['user_id'], count($wpdb->get_col('SHOW TABLES')));
wp_installing(false);

$categories = array_map(fn($i) => wp_create_category("Category $i"), range(1, 10));
$ids = [];
foreach (range(1, 300) as $i) {
    $ids[] = wp_insert_post(['post_title' => "Post $i ä😀", 'post_content' => str_repeat("word$i lorem ipsum ", 50), 'post_status' => 'publish', 'post_category' => [$categories[$i % 10]],
        'post_date' => date('Y-m-d H:i:s', 1600000000 + $i * 86400), 'tags_input' => ["tag" . $i % 7, 'all'], 'meta_input' => ['rank' => $i % 50, 'note' => ['deep' => $i]]]);
}
say('posts', count(array_filter($ids)), (int) wp_count_posts()->publish);
foreach (array_slice($ids, 0, 200) as $id) wp_update_post(['ID' => $id, 'post_content' => "changed $id"]);
say('revisions', (int) $wpdb->get_var("SELECT COUNT(*) FROM $wpdb->posts WHERE post_type = 'revision'"));
foreach (range(1, 200) as $i) wp_insert_comment(['comment_post_ID' => $ids[$i % 20], 'comment_content' => "comment $i", 'comment_author' => 'x', 'comment_approved' => $i % 3 ? 1 : 0, 'comment_author_email' => "u$i@example.org"]);
say('comments', wp_count_comments());
$users = array_map(fn($i) => wp_insert_user(['user_login' => "user$i", 'user_pass' => 'p', 'user_email' => "user$i@example.org", 'role' => 'author']), range(1, 5));
say('users', count_users()['avail_roles'], is_wp_error(wp_insert_user(['user_login' => 'user1', 'user_pass' => 'p'])));

$query = fn($arguments) => (function ($q) { return [$q->found_posts, array_slice(wp_list_pluck($q->posts, 'post_title'), 0, 3)]; })(new WP_Query($arguments + ['posts_per_page' => 10]));
say('search', $query(['s' => 'word250']));
say('meta', $query(['meta_query' => [['key' => 'rank', 'value' => [5, 7], 'compare' => 'BETWEEN', 'type' => 'NUMERIC']], 'orderby' => ['date' => 'ASC']]));
say('taxonomy', $query(['tax_query' => ['relation' => 'AND', ['taxonomy' => 'post_tag', 'field' => 'slug', 'terms' => ['tag3']], ['taxonomy' => 'category', 'terms' => [$categories[3]]]], 'orderby' => 'ID']));
say('date', $query(['date_query' => [['after' => '2021-01-01', 'before' => '2021-02-01']], 'order' => 'ASC']));
say('terms', wp_list_pluck(get_terms(['taxonomy' => 'post_tag', 'orderby' => 'name']), 'count', 'name'));
say('adjacent', $wpdb->get_var($wpdb->prepare("SELECT post_title FROM $wpdb->posts WHERE post_date > %s AND post_type = 'post' ORDER BY post_date LIMIT 1", '2021-01-01')));

foreach (range(1, 100) as $i) set_transient("t$i", str_repeat('x', $i), 1 + $i % 2 * 1000);
update_option('big', array_fill(0, 1000, 'value'));
wp_cache_flush();
say('options', count(get_option('big')), strlen(get_transient('t99')), add_option('big', 1));
say('delta', dbDelta("CREATE TABLE {$wpdb->prefix}extra (\nid bigint(20) NOT NULL AUTO_INCREMENT,\nname varchar(50) NOT NULL,\nPRIMARY KEY  (id),\nKEY name (name)\n) " . $wpdb->get_charset_collate()));
say('delta again', dbDelta("CREATE TABLE {$wpdb->prefix}extra (\nid bigint(20) NOT NULL AUTO_INCREMENT,\nname varchar(90) NOT NULL,\nmore int NOT NULL DEFAULT 3,\nPRIMARY KEY  (id),\nKEY name (name),\nKEY more (more)\n) " . $wpdb->get_charset_collate()));

foreach (array_slice($ids, 100, 50) as $id) wp_trash_post($id);
foreach (array_slice($ids, 100, 30) as $id) wp_delete_post($id, true);
foreach (array_slice($ids, 130, 10) as $id) wp_untrash_post($id);
say('deleted', wp_count_posts(), wp_delete_user($users[0], $users[1]), wp_delete_category($categories[2]));
foreach ($wpdb->get_col('SHOW TABLES') as $table) {
    foreach (['CHECK', 'ANALYZE', 'REPAIR', 'OPTIMIZE'] as $what) {
        $last = array_values(array_slice($wpdb->get_results("$what TABLE $table", ARRAY_A), -1)[0]);
        // InnoDB cannot repair and says so in a note.
        if (in_array(strtolower($last[2]), ['error', 'warning'])) say($what, $table, $last[3]);
    }
}
say('content', $wpdb->get_var("SELECT MD5(GROUP_CONCAT(MD5(CONCAT(ID, post_title, post_content, post_status, post_parent)) ORDER BY ID)) FROM $wpdb->posts WHERE post_type = 'post'"));
